// The REST API. 64-bit numbers that a browser would round come as text, and go out as BigInt.

export class Refusal extends Error {
  constructor(problem) {
    super(problem.detail || problem.title);
    this.problem = problem;
  }

  /** Whether the user lacks a permission. */
  get isDenied() {
    return this.problem.status === FORBIDDEN;
  }
}

const FORBIDDEN = 403;

// What was denied is not requested again by the same page, which may poll: each denial is a line in the audit log.
const denied = new Map();

export function forgetDenials() {
  denied.clear();
}

addEventListener("hashchange", forgetDenials);

const LONG_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d{16,}(?![\d.eE])/g;

export function parse(text) {
  const isSafe = !/\d{16}/.test(text);
  return JSON.parse(isSafe ? text : text.replace(LONG_NUMBER, (token) => (token[0] === '"' ? token : `"${token}"`)));
}

function write(body) {
  const text = JSON.stringify(body, (_, value) => (typeof value === "bigint" ? `\u0001${value}` : value));
  return text.replace(/"\\u0001(-?\d+)"/g, "$1");
}

/** url`/v1/topics/${name}` with every value encoded. */
export function url(strings, ...values) {
  return strings.reduce((path, part, index) => path + encodeURIComponent(values[index - 1]) + part);
}

export function withQuery(path, query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

async function call(method, path, { body, signal } = {}) {
  const before = method === "GET" && denied.get(path);
  if (before) throw before;
  const init = { method, signal, headers: { accept: "application/json" } };
  if (body !== undefined) {
    init.body = write(body);
    init.headers["content-type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(path, init);
  } catch (failed) {
    if (failed.name === "AbortError") throw failed;
    throw new Refusal({ title: "The broker does not answer", detail: "", hint: "Is it still running?" });
  }
  if (response.status === 401) {
    const { login } = await import("./login.js");
    await login();
    return call(method, path, { body, signal });
  }
  const text = await response.text();
  if (response.ok) return parse(text);
  const refusal = new Refusal(problemOf(response, text));
  if (refusal.isDenied && method === "GET") denied.set(path, refusal);
  throw refusal;
}

function problemOf(response, text) {
  if (response.headers.get("content-type")?.includes("json")) {
    const problem = parse(text);
    // Errors of the schema registry have the form of its API.
    if (!problem.error_code) return problem;
    return { title: problem.message, code: String(problem.error_code), status: response.status };
  }
  return {
    title: response.statusText || `Status ${response.status}`,
    detail: text.slice(0, 300),
    status: response.status,
  };
}

export const api = {
  get: (path, signal) => call("GET", path, { signal }),
  post: (path, body, signal) => call("POST", path, { body, signal }),
  put: (path, body) => call("PUT", path, { body }),
  patch: (path, body) => call("PATCH", path, { body }),
  delete: (path) => call("DELETE", path),
};
