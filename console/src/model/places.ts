/** Where words stand in a text. Pure. */

/** Every place of every word, from the first to the last; capitals and small letters are the same. */
export function placesIn(text: string, words: readonly string[]): [number, number][] {
  const low = text.toLowerCase();
  if (low.length !== text.length) return []; // a letter whose other size is longer: places would be wrong
  const found = words.filter((word) => word !== "").flatMap((word) => everyPlace(low, word.toLowerCase()));
  return found.sort(([one], [other]) => one - other);
}

function everyPlace(text: string, word: string): [number, number][] {
  const found: [number, number][] = [];
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) found.push([at, at + word.length]);
  return found;
}
