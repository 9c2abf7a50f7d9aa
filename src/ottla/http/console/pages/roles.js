// Roles: members, and the ACLs of each.

import { api, url } from "../parts/api.js";
import { confirmByName, form } from "../parts/dialog.js";
import { h } from "../parts/dom.js";
import { field } from "../parts/field.js";
import { notify } from "../parts/notice.js";
import { permissionBadge, resourceName } from "./acls.js";

export function roleColumns(draw, mayAlter) {
  return [
    { label: "Role", cell: ({ name }) => name, sort: ({ name }) => name },
    {
      label: "Members",
      cell: ({ name, members }) =>
        members.map((member) => {
          const remove = () => removeMember(name, member, draw);
          const button = mayAlter && h("button.quiet", { type: "button", onclick: remove }, `Remove ${member}`);
          return h("div", member, " ", button);
        }),
    },
    { label: "Rules", cell: ({ rules }) => rules.map((rule) => h("div", ...sentence(rule))) },
    mayAlter && {
      label: "",
      cell: ({ name }) => [
        h("button.quiet", { type: "button", onclick: () => newMember(name, draw) }, "Add member"),
        h("button.quiet", { type: "button", onclick: () => deleteRole(name, draw) }, "Delete"),
      ],
    },
  ].filter(Boolean);
}

function sentence({ permission, operation, resource_type: kind, ...acl }) {
  return [permissionBadge({ permission }), ` ${operation} ${kind.toLowerCase()} `, h("code", resourceName(acl))];
}

export function newMember(role, done) {
  const name = h("input", { name: "role", required: true, value: role, readonly: role !== "", autofocus: role === "" });
  const member = h("input", { name: "member", required: true, placeholder: "User:ann", autofocus: role !== "" });
  const fields = [field("Role", name), field("Member", member, "A user, a group of tokens such as Group:sales, or a role")];
  return form(role ? `Add a member to ${role}` : "Add role member", fields, {
    submit: "Add",
    send: async (given) => {
      await api.put(url`/v1/roles/${given.get("role")}/members/${given.get("member")}`);
      done();
    },
  });
}

async function removeMember(role, member, done) {
  await api.delete(url`/v1/roles/${role}/members/${member}`);
  notify(`Removed ${member} from ${role}`);
  done();
}

function deleteRole(name, done) {
  return confirmByName(`Delete ${name}`, "Its rules and memberships are deleted.", name, "Delete role", async () => {
    await api.delete(url`/v1/roles/${name}`);
    notify(`Deleted ${name}`);
    done();
  });
}
