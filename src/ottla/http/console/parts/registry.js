// The schema registry: its API, and schemas as people read them.

import { api, url, withQuery } from "./api.js";

const ROOT = "/schema-registry";

export const LEVELS = [
  "NONE",
  "BACKWARD",
  "BACKWARD_TRANSITIVE",
  "FORWARD",
  "FORWARD_TRANSITIVE",
  "FULL",
  "FULL_TRANSITIVE",
];
export const MODES = ["READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT"];
export const TYPES = ["AVRO", "JSON", "PROTOBUF"];

const below = (subject) => ROOT + url`/subjects/${subject}`;

export const registry = {
  latest: (signal) => api.get(`${ROOT}/schemas?latestOnly=true`, signal),
  versions: (subject, signal) => api.get(`${below(subject)}/versions`, signal),
  version: (subject, number, signal) => api.get(`${below(subject)}/versions/${number}`, signal),
  referring: (subject, number, signal) => api.get(`${below(subject)}/versions/${number}/referencedby`, signal),
  byId: (id, query = {}) => api.get(withQuery(ROOT + url`/schemas/ids/${id}`, query)),
  places: (id) => api.get(ROOT + url`/schemas/ids/${id}/versions`),
  check: (subject, body) => api.post(`${ROOT}/compatibility${url`/subjects/${subject}`}/versions?verbose=true`, body),
  register: (subject, body) => api.post(`${below(subject)}/versions`, body),
  deleteSubject: (subject) => api.delete(below(subject)),
  deleteVersion: (subject, number) => api.delete(`${below(subject)}/versions/${number}`),
  /** `kind`: config or mode; without a subject that of all. */
  setting: (kind, subject, signal) => api.get(`${of(kind, subject)}?defaultToGlobal=true`, signal),
  set: (kind, subject, value) =>
    api.put(of(kind, subject), kind === "config" ? { compatibility: value } : { mode: value }),
  unset: (kind, subject) => api.delete(of(kind, subject)),
};

function of(kind, subject) {
  return subject === undefined ? `${ROOT}/${kind}` : `${ROOT}/${kind}${url`/${subject}`}`;
}

/** JSON on many lines; a .proto file as it is. */
export function readable({ schema, schemaType }) {
  if (schemaType === "PROTOBUF") return schema.trimEnd();
  try {
    return JSON.stringify(JSON.parse(schema), null, 2);
  } catch {
    return schema;
  }
}

/** The topic that a subject is named after, and what of its messages it describes. */
export function topicOf(subject) {
  const found = /^(.+)-(key|value)$/.exec(subject.replace(/^:\.[^:]*:/, ""));
  return found ? { topic: found[1], part: found[2] } : undefined;
}
