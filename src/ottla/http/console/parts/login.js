// Saying who one is, where the broker asks. The session is a cookie that no script can read.

import { forgetDenials } from "./api.js";
import { form } from "./dialog.js";
import { h } from "./dom.js";
import { field } from "./field.js";

/** The event after a login. */
export const LOGGED_IN = "ottla-logged-in";

let asked;

/** Show the login form, once for all pending requests; resolves after the login. */
export function login() {
  asked ??= new Promise((resolve, reject) => {
    const user = h("input", {
      name: "user",
      required: true,
      autofocus: true,
      autocomplete: "username",
      autocapitalize: "off",
      spellcheck: "false",
    });
    const password = h("input", {
      name: "password",
      type: "password",
      required: true,
      autocomplete: "current-password",
    });
    const provider = h("p", { hidden: true }, h("a.button", { href: "/v1/session/oidc" }, "Log in with single sign-on"));
    offer(provider);
    const dialog = form("Log in", [provider, field("User", user), field("Password", password)], {
      submit: "Log in",
      send: async (given) => {
        await begin(given.get("user"), given.get("password"));
        forgetDenials();
        resolve();
        document.dispatchEvent(new Event(LOGGED_IN));
      },
    });
    dialog.addEventListener("close", () => {
      asked = undefined;
      reject(new DOMException("Login cancelled", "AbortError"));
    });
  });
  return asked;
}

async function offer(provider) {
  const who = await (await fetch("/v1/session")).json();
  provider.hidden = who.login_url === null;
}

async function begin(user, password) {
  const response = await fetch("/v1/session", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ user, password }),
  });
  if (response.ok) return;
  const { detail } = await response.json();
  throw new Error(detail === "the login failed" ? "The user or the password is wrong." : detail);
}

export async function logout() {
  const response = await fetch("/v1/session", { method: "DELETE" });
  const { logout_url: elsewhere } = response.ok ? await response.json() : {};
  if (elsewhere) location.assign(elsewhere);
  else location.reload();
}
