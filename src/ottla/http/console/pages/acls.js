// ACLs: who is allowed or denied what.

import { api, withQuery } from "../parts/api.js";
import { form } from "../parts/dialog.js";
import { h } from "../parts/dom.js";
import { badge, choice, field } from "../parts/field.js";
import { notify } from "../parts/notice.js";

const OPERATIONS = [
  "READ",
  "WRITE",
  "DESCRIBE",
  "CREATE",
  "DELETE",
  "ALTER",
  "DESCRIBE_CONFIGS",
  "ALTER_CONFIGS",
  "CLUSTER_ACTION",
  "IDEMPOTENT_WRITE",
  "CREATE_TOKENS",
  "DESCRIBE_TOKENS",
  "ALL",
];
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
  ["PREFIXED", "Names that begin with it"],
];
const PERMISSIONS = [
  ["ALLOW", "Allow"],
  ["DENY", "Deny"],
];
const CLUSTER = "kafka-cluster";

export function permissionBadge({ permission }) {
  return permission === "DENY" ? badge("Deny", "bad") : badge("Allow", "good");
}

export function resourceName({ resource_name: name, pattern_type: pattern }) {
  return pattern === "PREFIXED" ? `${name}…` : name;
}

/** `mayAlter`: whether the user may change them. */
export function aclColumns(draw, mayAlter) {
  return [
    { label: "Principal", cell: ({ principal }) => principal, sort: ({ principal }) => principal },
    { label: "Permission", cell: permissionBadge, sort: ({ permission }) => permission },
    { label: "Operation", cell: ({ operation }) => operation, sort: ({ operation }) => operation },
    { label: "Resource", cell: ({ resource_type: kind }) => kind, sort: ({ resource_type: kind }) => kind },
    { label: "Name", cell: (acl) => h("code", resourceName(acl)), sort: resourceName },
    { label: "Host", cell: ({ host }) => host, sort: ({ host }) => host },
    mayAlter && {
      label: "",
      cell: (acl) => [
        h("button.quiet", { type: "button", onclick: () => editAcl(acl, draw) }, "Edit"),
        h("button.quiet", { type: "button", onclick: () => deleteAcl(acl, draw) }, "Delete"),
      ],
    },
  ].filter(Boolean);
}

export function newAcl(done) {
  return aclForm("Add ACL", "Add", {}, async (acl) => {
    await api.post("/v1/acls", acl);
    done();
  });
}

function editAcl(acl, done) {
  return aclForm("Edit ACL", "Save", acl, async (changed) => {
    const isSame = Object.entries(changed).every(([name, value]) => acl[name] === value);
    if (!isSame) {
      // The new one first: the principal is never without both.
      await api.post("/v1/acls", changed);
      await api.delete(withQuery("/v1/acls", acl));
    }
    done();
  });
}

function aclForm(title, submit, acl, send) {
  const isCluster = acl.resource_type === "CLUSTER";
  const principal = h("input", {
    name: "principal",
    required: true,
    autofocus: true,
    placeholder: "User:ann",
    value: acl.principal ?? "",
  });
  const name = h("input", { name: "resource_name", placeholder: "orders", value: isCluster ? "" : (acl.resource_name ?? "") });
  const host = h("input", { name: "host", required: true, value: acl.host ?? "*" });
  const operations = OPERATIONS.map((one) => [one, one]);
  const fields = [
    field("Principal", principal, "User:* is all users"),
    h(
      "div.two",
      field("Permission", choice("permission", PERMISSIONS, acl.permission)),
      field("Operation", choice("operation", operations, acl.operation)),
    ),
    h(
      "div.two",
      field("Resource", choice("resource_type", RESOURCES, acl.resource_type)),
      field("Match", choice("pattern_type", PATTERNS, acl.pattern_type)),
    ),
    h("div.two", field("Name", name, "* for all; empty for the cluster"), field("Host", host, "* for all")),
  ];
  return form(title, fields, {
    submit,
    send: (given) => {
      const wanted = Object.fromEntries(given);
      if (wanted.resource_type === "CLUSTER") Object.assign(wanted, { resource_name: CLUSTER, pattern_type: "LITERAL" });
      return send(wanted);
    },
  });
}

async function deleteAcl(acl, done) {
  await api.delete(withQuery("/v1/acls", acl));
  notify(`Deleted an ACL of ${acl.principal}`);
  done();
}
