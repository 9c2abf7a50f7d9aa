// Who uses the console, and what they may do with the cluster. What is not allowed is not requested: a refused request
// is a line in the audit log.

import { api } from "./api.js";
import { h } from "./dom.js";
import { LOGGED_IN, login } from "./login.js";

let asked;

/** The answer of /v1/session, after a login if one is required; requested once per login. */
export function session() {
  asked ??= ask().catch((failed) => {
    forgetSession();
    throw failed;
  });
  return asked;
}

async function ask() {
  const who = await api.get("/v1/session");
  if (!who.needs_login) return who;
  await login();
  return api.get("/v1/session");
}

export function forgetSession() {
  asked = undefined;
}

document.addEventListener(LOGGED_IN, forgetSession);

/** Whether the user may do this with the cluster, such as "DESCRIBE". */
export async function may(operation) {
  return (await session()).cluster_operations.includes(operation);
}

/** Instead of content that the user may not see: "You may not …: that needs DESCRIBE on the cluster." */
export function notAllowed(what, operation, on = "the cluster") {
  return h("p.empty.not-allowed", `You may not ${what}: that needs ${operation} on ${on}.`);
}
