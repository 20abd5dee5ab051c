// Columns of numbers that lie in a page as compressed bytes, as typed arrays.
// Invariant: every value is exact; what is absent is NaN, and a column that is cut short is none.

// Base64 of gzip, as bytes; `again` says how to have the page written again.
async function unpack(id, again) {
  if (typeof DecompressionStream !== "function") throw new Trouble("This browser cannot unpack the data.", "Use a browser of 2023 or later: Chromium 80, Firefox 113, Safari 16.4.");
  const holder = document.getElementById(id);
  const text = holder.textContent.trim();
  holder.textContent = "";
  try {
    const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return new Uint8Array(await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
  } catch { throw new Trouble("The data in this file is damaged.", `The file was probably cut short. ${again}`); }
}

const COLUMN_KINDS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f64: Float64Array };

// A column of so many values in the type that it came in, in which what is absent is the largest value.
function unpackWords(raw, buffer, n, again) {
  const Kind = COLUMN_KINDS[raw?.kind];
  if (!Kind || !(raw.at + Kind.BYTES_PER_ELEMENT * n <= buffer.length)) throw new Trouble(`The column ${raw?.key ?? ""} is cut short.`, again);
  const values = new Kind(n);
  const width = Kind.BYTES_PER_ELEMENT;
  if (width === 1) { values.set(buffer.subarray(raw.at, raw.at + n)); return values; }
  const parts = new Uint8Array(values.buffer);
  for (let p = 0; p < width; p += 1) {
    const plane = buffer.subarray(raw.at + p * n, raw.at + (p + 1) * n);
    for (let i = 0; i < n; i += 1) parts[width * i + p] = plane[i];
  }
  return values;
}

// The same as numbers, in which what is absent is NaN.
function unpackColumn(raw, buffer, n, again) {
  const words = unpackWords(raw, buffer, n, again);
  if (raw.kind === "f64") return words;
  const absent = 256 ** words.BYTES_PER_ELEMENT - 1;
  return Float64Array.from(words, (v) => (v === absent ? NaN : v));
}
