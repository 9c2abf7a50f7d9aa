// Bytes as text and as hexadecimal.

const strict = new TextDecoder("utf-8", { fatal: true });
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/;
const ROW = 16;

export function fromBase64(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

export function toBase64(bytes) {
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return btoa(letters);
}

/** The UTF-8 in these bytes, or undefined if that is not what they are. */
export function asText(bytes) {
  try {
    const text = strict.decode(bytes);
    return CONTROL.test(text) ? undefined : text;
  } catch {
    return undefined;
  }
}

/** The same of bytes that may end in the middle of a letter. */
export function beginningAsText(bytes) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true });
    return CONTROL.test(text) ? undefined : text;
  } catch {
    return undefined;
  }
}

const hex = (byte) => byte.toString(16).padStart(2, "0");

export function asHex(bytes) {
  return Array.from(bytes, hex).join(" ");
}

/** Offset, bytes and letters, sixteen to a line. */
export function hexDump(bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += ROW) {
    const row = bytes.subarray(at, at + ROW);
    const halves = [asHex(row.subarray(0, 8)), asHex(row.subarray(8))].join("  ");
    const letters = Array.from(row, (byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "·")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${halves.padEnd(ROW * 3 + 1)}  ${letters}`);
  }
  return lines.join("\n");
}
