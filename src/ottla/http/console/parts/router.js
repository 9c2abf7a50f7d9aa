// Places are hashes, such as #/topics/orders/messages?partition=0; leaving one ends whatever it had under way.

// The address of the page that is drawn. A drawer in front of it has another one.
let drawn;

export function follow(routes, show) {
  let leaving = new AbortController();
  const go = () => {
    // Back from a drawer: the page is still there.
    if (drawn !== undefined && location.hash === drawn) return;
    drawn = location.hash;
    leaving.abort();
    leaving = new AbortController();
    const [path, query] = location.hash.slice(2).split("?");
    const found = find(routes, path);
    show({ path, query: new URLSearchParams(query), params: found?.params ?? {}, signal: leaving.signal }, found?.load);
  };
  addEventListener("hashchange", go);
  go();
}

function find(routes, path) {
  const parts = path.split("/");
  for (const [pattern, load] of routes) {
    const steps = pattern.split("/");
    if (steps.length !== parts.length) continue;
    const params = {};
    const matches = steps.every((step, index) => {
      if (!step.startsWith(":")) return step === parts[index];
      params[step.slice(1)] = decoded(parts[index]);
      return parts[index] !== "";
    });
    if (matches) return { params, load };
  }
  return undefined;
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function place(...parts) {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

/** Note what is looked at in the address, so that it can be shared, without leaving the page. */
export function note(query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const [path] = location.hash.split("?");
  history.replaceState(null, "", given.length ? `${path}?${new URLSearchParams(given)}` : path);
  drawn = location.hash;
}

/** The address of a drawer in front of this page, which Back closes; `isOpen` when the drawer shows something else. */
export function noteDrawer(address, isOpen) {
  if (isOpen) history.replaceState({ isDrawer: true }, "", address);
  else history.pushState({ isDrawer: true }, "", address);
}

/** Back to the page behind the drawer, after it was closed without Back. */
export function leaveDrawer() {
  if (history.state?.isDrawer) history.back();
}
