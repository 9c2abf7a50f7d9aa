// Who can log in, and who may do what.

import { api, url, withQuery } from "../parts/api.js";
import { confirmByName, form } from "../parts/dialog.js";
import { h } from "../parts/dom.js";
import { badge, card, choice, field, heading } from "../parts/field.js";
import { attempt, notify } from "../parts/notice.js";
import { table } from "../parts/table.js";

const OPERATIONS = ["READ", "WRITE", "DESCRIBE", "CREATE", "DELETE", "ALTER", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "CREATE_TOKENS", "DESCRIBE_TOKENS", "ALL"];
const RESOURCES = [
  ["TOPIC", "Topic"],
  ["GROUP", "Group"],
  ["CLUSTER", "Cluster"],
  ["TRANSACTIONAL_ID", "Transactional id"],
  ["DELEGATION_TOKEN", "Delegation token"],
  ["USER", "User"],
];
const PATTERNS = [
  ["LITERAL", "Exactly this name"],
  ["PREFIXED", "Names that begin so"],
];
const PERMISSIONS = [
  ["ALLOW", "Allow"],
  ["DENY", "Deny"],
];
const CLUSTER = "kafka-cluster";

export async function show({ signal }) {
  const refusal = h("div.refusal");
  const who = await api.get("/v1/session", signal);
  const draw = () =>
    attempt(refusal, async () => {
      users.update((await api.get("/v1/users", signal)).users);
      if (!who.has_acls) return;
      roles.update((await api.get("/v1/roles", signal)).roles);
      acls.update((await api.get("/v1/acls", signal)).acls);
    });
  const users = table(userColumns(draw), { caption: "Users", empty: "No user logs in with a password." });
  const roles = table(roleColumns(draw), {
    caption: "Roles",
    empty: "No role: add an ACL for a principal such as Role:analyst, then members.",
  });
  const acls = table(aclColumns(draw), { caption: "ACLs", empty: "No ACL: only super users may do anything." });
  await draw();
  const addUser = h("button.primary", { type: "button", onclick: () => setPassword("", draw) }, "Add user");
  const addMember =
    who.has_acls && h("button", { type: "button", onclick: () => newMember("", draw) }, "Add role member");
  const addAcl = who.has_acls && h("button.primary", { type: "button", onclick: () => newAcl(draw) }, "Add ACL");
  return h(
    "div.page",
    heading("Access", addUser, addMember, addAcl),
    refusal,
    card("Users", users),
    who.has_acls && card("Roles", roles),
    who.has_acls ? card("ACLs", acls) : h("p.empty", "ACLs are disabled: all users have full access."),
  );
}

function userColumns(draw) {
  return [
    { label: "User", cell: ({ name }) => name, sort: ({ name }) => name },
    { label: "Logs in with", cell: ({ mechanisms }) => mechanisms.map((one) => badge(one)) },
    { label: "Password expires", cell: ({ expires_ms: at }) => expiry(at), sort: ({ expires_ms: at }) => Number(at ?? Infinity) },
    {
      label: "",
      cell: ({ name }) => [
        h("button.quiet", { type: "button", onclick: () => setPassword(name, draw) }, "New password"),
        h("button.quiet", { type: "button", onclick: () => setExpiry(name, draw) }, "Change expiry"),
        h("button.quiet", { type: "button", onclick: () => deleteUser(name, draw) }, "Delete"),
      ],
    },
  ];
}

function expiry(at) {
  if (at === null) return "never";
  const time = h("time", { datetime: new Date(Number(at)).toISOString() }, new Date(Number(at)).toLocaleString());
  return Number(at) <= Date.now() ? [badge("expired", "bad"), " ", time] : time;
}

function roleColumns(draw) {
  return [
    { label: "Role", cell: ({ name }) => name, sort: ({ name }) => name },
    {
      label: "Members",
      cell: ({ name, members }) =>
        members.map((member) => {
          const remove = () => removeMember(name, member, draw);
          return h("div", member, " ", h("button.quiet", { type: "button", onclick: remove }, `Remove ${member}`));
        }),
    },
    { label: "Rules", cell: ({ rules }) => rules.map((rule) => h("div", ...sentence(rule))) },
    {
      label: "",
      cell: ({ name }) => [
        h("button.quiet", { type: "button", onclick: () => newMember(name, draw) }, "Add member"),
        h("button.quiet", { type: "button", onclick: () => deleteRole(name, draw) }, "Delete"),
      ],
    },
  ];
}

function sentence({ permission, operation, resource_type: kind, ...acl }) {
  const may = badge(operation, permission === "DENY" ? "bad" : "good");
  return [may, ` ${kind.toLowerCase()} `, h("code", resourceName(acl))];
}

function resourceName({ resource_name: name, pattern_type: pattern }) {
  return pattern === "PREFIXED" ? `${name}…` : name;
}

function aclColumns(draw) {
  const name = resourceName;
  return [
    { label: "Principal", cell: ({ principal }) => principal, sort: ({ principal }) => principal },
    {
      label: "May",
      cell: ({ permission, operation }) => badge(operation, permission === "DENY" ? "bad" : "good"),
      sort: ({ permission, operation }) => permission + operation,
    },
    { label: "What", cell: ({ resource_type: kind }) => kind, sort: ({ resource_type: kind }) => kind },
    { label: "Name", cell: (acl) => h("code", name(acl)), sort: name },
    { label: "From", cell: ({ host }) => host, sort: ({ host }) => host },
    {
      label: "",
      cell: (acl) => h("button.quiet", { type: "button", onclick: () => deleteAcl(acl, draw) }, "Delete"),
    },
  ];
}

function setPassword(name, done) {
  const user = h("input", {
    name: "user",
    required: true,
    value: name,
    readonly: name !== "",
    autofocus: name === "",
    autocapitalize: "off",
    spellcheck: "false",
  });
  const password = h("input", {
    name: "password",
    type: "password",
    required: true,
    autofocus: name !== "",
    autocomplete: "new-password",
  });
  const fields = [field("User", user), field("Password", password), field("Valid for days (optional)", days())];
  return form(name ? `Password of ${name}` : "Add user", fields, {
    submit: name ? "Change" : "Add",
    send: async (given) => {
      const body = { password: given.get("password"), valid_ms: milliseconds(given.get("days")) };
      await api.put(url`/v1/users/${given.get("user")}`, body);
      done();
    },
  });
}

function setExpiry(name, done) {
  const fields = [field("Valid for days; empty for no limit, 0 to expire it now", days("0"))];
  return form(`Expiry of the password of ${name}`, fields, {
    submit: "Change",
    send: async (given) => {
      await api.put(url`/v1/users/${name}/expiry`, { valid_ms: milliseconds(given.get("days")) });
      done();
    },
  });
}

function days(min = "1") {
  return h("input", { name: "days", type: "number", min, step: "1", max: "36500" });
}

function milliseconds(daysGiven) {
  return daysGiven === "" ? null : Number(daysGiven) * 86_400_000;
}

function deleteUser(name, done) {
  return confirmByName(`Delete ${name}`, "The user can log in no more.", name, "Delete user", async () => {
    await api.delete(url`/v1/users/${name}`);
    notify(`Deleted ${name}`);
    done();
  });
}

function newMember(role, done) {
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

function newAcl(done) {
  const principal = h("input", { name: "principal", required: true, autofocus: true, placeholder: "User:ann" });
  const name = h("input", { name: "resource_name", placeholder: "orders" });
  const fields = [
    field("Principal", principal, "User:* is all users"),
    h(
      "div.two",
      field("", choice("permission", PERMISSIONS)),
      field(
        "Operation",
        choice(
          "operation",
          OPERATIONS.map((one) => [one, one]),
        ),
      ),
    ),
    h("div.two", field("On", choice("resource_type", RESOURCES)), field("", choice("pattern_type", PATTERNS))),
    field("Name", name, "* is all of them; of the cluster, nothing"),
  ];
  return form("Add ACL", fields, {
    submit: "Add",
    send: async (given) => {
      const acl = Object.fromEntries(given);
      if (acl.resource_type === "CLUSTER") Object.assign(acl, { resource_name: CLUSTER, pattern_type: "LITERAL" });
      await api.post("/v1/acls", acl);
      done();
    },
  });
}

async function deleteAcl(acl, done) {
  await api.delete(withQuery("/v1/acls", acl));
  notify(`Deleted an ACL of ${acl.principal}`);
  done();
}
