// Who can log in, and what they may do.

import { api } from "../parts/api.js";
import { h } from "../parts/dom.js";
import { badge, card, heading } from "../parts/field.js";
import { attempt } from "../parts/notice.js";
import { notAllowed, session } from "../parts/session.js";
import { table } from "../parts/table.js";
import { aclColumns, newAcl } from "./acls.js";
import { newMember, roleColumns } from "./roles.js";
import { setPassword, userColumns } from "./users.js";

export async function show({ signal }) {
  const who = await session();
  const mayDescribe = who.cluster_operations.includes("DESCRIBE");
  const mayAlter = who.cluster_operations.includes("ALTER");
  if (!mayDescribe) {
    const others = card("Users, roles and ACLs", notAllowed("see them", "DESCRIBE"));
    return h("div.page", heading("Access"), card("You", you(who)), others);
  }
  const refusal = h("div.refusal");
  const draw = () =>
    attempt(refusal, async () => {
      users.update((await api.get("/v1/users", signal)).users);
      if (!who.has_acls) return;
      roles.update((await api.get("/v1/roles", signal)).roles);
      acls.update((await api.get("/v1/acls", signal)).acls);
    });
  const users = table(userColumns(draw, mayAlter), { caption: "Users", empty: "No user has a password." });
  const roles = table(roleColumns(draw, mayAlter), {
    caption: "Roles",
    empty: "No roles: add an ACL for a principal such as Role:analyst, then members.",
  });
  const acls = table(aclColumns(draw, mayAlter), { caption: "ACLs", empty: noAcls(who) });
  await draw();
  return h(
    "div.page",
    heading("Access", mayAlter && actions(who, draw)),
    refusal,
    card("You", you(who)),
    card("Users", users),
    who.has_acls && card("Roles", roles),
    who.has_acls ? card("ACLs", acls) : h("p.empty", "ACLs are disabled: all users have full access."),
  );
}

function actions({ has_acls: hasAcls }, draw) {
  const button = (kind, label, onclick) => h(kind, { type: "button", onclick }, label);
  return [
    button("button.primary", "Add user", () => setPassword("", draw)),
    hasAcls && button("button", "Add role member", () => newMember("", draw)),
    hasAcls && button("button.primary", "Add ACL", () => newAcl(draw)),
  ];
}

function you({ principal, has_acls: hasAcls, cluster_operations: operations }) {
  const rights = operations.length ? operations.map((one) => [badge(one), " "]) : h("span.soft", "nothing");
  return h(
    "dl.facts",
    h("dt", "Principal"),
    h("dd", h("code", principal)),
    h("dt", "Allowed on the cluster"),
    h("dd", hasAcls ? rights : "everything: ACLs are disabled"),
  );
}

function noAcls({ is_open_without_acl: isOpen }) {
  return isOpen
    ? "No ACLs: all users have full access (security.allow_everyone_if_no_acl)."
    : "No ACLs: only super users have access.";
}
