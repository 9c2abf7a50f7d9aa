// The frame around the pages: where they are, which one is shown, and whether the broker answers.

import { h, replace } from "./parts/dom.js";
import { count } from "./parts/format.js";
import { startHistory } from "./parts/history.js";
import { icon } from "./parts/icons.js";
import { LOGGED_IN, logout } from "./parts/login.js";
import { problemCard } from "./parts/notice.js";
import { follow } from "./parts/router.js";
import { session } from "./parts/session.js";

const NAV = [
  ["", "Overview", "overview"],
  ["topics", "Topics", "topics"],
  ["groups", "Groups", "groups"],
  ["transactions", "Transactions", "transactions"],
  ["schemas", "Schemas", "schemas"],
  ["pipelines", "Pipelines", "pipelines"],
  ["cluster", "Cluster", "cluster"],
  ["connect", "Connect", "connect"],
];

const ROUTES = [
  ["", () => import("./pages/overview.js")],
  ["topics", () => import("./pages/topics.js")],
  ["topics/:name", () => import("./pages/topic.js")],
  ["topics/:name/:tab", () => import("./pages/topic.js")],
  ["topics/:name/messages/:partition/:offset", () => import("./pages/message.js")],
  ["groups", () => import("./pages/groups.js")],
  ["groups/:id", () => import("./pages/group.js")],
  ["transactions", () => import("./pages/transactions.js")],
  ["transactions/:id", () => import("./pages/transaction.js")],
  ["schemas", () => import("./pages/schemas.js")],
  ["schemas/:subject", () => import("./pages/subject.js")],
  ["pipelines", () => import("./pages/pipelines.js")],
  ["pipelines/:name", () => import("./pages/pipeline.js")],
  ["cluster", () => import("./pages/cluster.js")],
  ["connect", () => import("./pages/connect.js")],
  ["access", () => import("./pages/access.js")],
];

const LOADING_MS = 400;
const MANY_PARTITIONS = 1000;

const main = document.querySelector("main");
const nav = document.querySelector("nav");
const status = document.querySelector(".broker");

nav.append(...NAV.map(link));

function link([path, label, name]) {
  return h("a", { href: `#/${path}`, "data-page": path }, icon(name), h("span", label));
}

// Where the broker asks who one is, there is a page for it, and a way out.
let out;

async function showWho() {
  const who = await session().catch(() => undefined);
  if (!who) return;
  if (!who.has_users) return;
  if (!nav.querySelector("[data-page=access]")) nav.append(link(["access", "Access", "access"]));
  out?.remove();
  out = h("button.quiet", { type: "button", onclick: logout, title: `Log out ${who.principal}` }, "Log out");
  if (!who.needs_login) status.after(out);
}

document.addEventListener(LOGGED_IN, showWho);
showWho();

startHistory((broker, problem) => {
  const isUp = problem === undefined;
  partitions = broker?.partitions ?? 0;
  status.classList.toggle("is-down", !isUp);
  const isSilent = !isUp && problem.problem?.status === undefined;
  replace(status, h("i.dot"), isUp ? `${broker.kafka}` : isSilent ? "The broker does not answer" : problem.message);
  status.title = isUp ? `Broker ${broker.broker_id}, Ottla ${broker.version}` : problem.message;
});

let isFirst = true;
let partitions = 0;

/** Shown while a page is loaded: the first look at many partitions takes seconds. */
function loadingText() {
  return partitions >= MANY_PARTITIONS ? `Opening ${count(partitions)} partitions …` : "Loading …";
}

function refuse(problem) {
  replace(main, h("h1", "Nothing to show"), problem);
}

follow(ROUTES, async (place, load) => {
  const section = place.path.split("/")[0];
  for (const link of nav.children) {
    if (link.dataset.page === section) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else link.removeAttribute("aria-current");
  }
  document.title = [...Object.values(place.params).reverse(), section, "Ottla"].filter(Boolean).join(" · ");
  if (load === undefined) {
    refuse(problemCard({ title: "There is no such page", hint: "The menu lists all pages." }));
    return;
  }
  main.setAttribute("aria-busy", "true");
  const waiting = setTimeout(() => replace(main, h("p.empty", { role: "status" }, loadingText())), LOADING_MS);
  place.signal.addEventListener("abort", () => clearTimeout(waiting));
  try {
    const page = await load();
    const shown = await page.show(place);
    // The user may have navigated away meanwhile.
    if (place.signal.aborted) return;
    replace(main, shown);
    if (!isFirst) main.focus({ preventScroll: true });
    isFirst = false;
  } catch (failed) {
    if (failed.name === "AbortError" || place.signal.aborted) return;
    const stale = failed instanceof TypeError && "Reload the page: the broker may have been updated.";
    refuse(problemCard(failed.problem ?? { title: failed.message, hint: stale || "" }));
  } finally {
    clearTimeout(waiting);
    if (!place.signal.aborted) main.removeAttribute("aria-busy");
  }
});

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.closest("input, textarea, select")) return;
  const search = main.querySelector("input[type=search]");
  if (search && !document.querySelector("dialog[open]")) {
    event.preventDefault();
    search.focus();
  }
});
