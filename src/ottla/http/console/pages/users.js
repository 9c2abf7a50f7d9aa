// Users: passwords and their expiry.

import { api, url } from "../parts/api.js";
import { confirmByName, form } from "../parts/dialog.js";
import { h } from "../parts/dom.js";
import { badge, field } from "../parts/field.js";
import { notify } from "../parts/notice.js";

/** `mayAlter`: whether the user may change others. */
export function userColumns(draw, mayAlter) {
  return [
    { label: "User", cell: ({ name }) => name, sort: ({ name }) => name },
    { label: "Logs in with", cell: ({ mechanisms }) => mechanisms.map((one) => badge(one)) },
    { label: "Password expires", cell: ({ expires_ms: at }) => expiry(at), sort: ({ expires_ms: at }) => Number(at ?? Infinity) },
    mayAlter && {
      label: "",
      cell: ({ name }) => [
        h("button.quiet", { type: "button", onclick: () => setPassword(name, draw) }, "New password"),
        h("button.quiet", { type: "button", onclick: () => setExpiry(name, draw) }, "Change expiry"),
        h("button.quiet", { type: "button", onclick: () => deleteUser(name, draw) }, "Delete"),
      ],
    },
  ].filter(Boolean);
}

function expiry(at) {
  if (at === null) return "never";
  const time = h("time", { datetime: new Date(Number(at)).toISOString() }, new Date(Number(at)).toLocaleString());
  return Number(at) <= Date.now() ? [badge("expired", "bad"), " ", time] : time;
}

export function setPassword(name, done) {
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
