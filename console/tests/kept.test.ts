/** What a person left unsent is kept by name, within a bound; a story is read once at a time, and its entries keep their names. */
import { expect, test, vi } from "vitest";
import { oneAtATime } from "../src/run/live";
import { named, type StoryEntry } from "../src/run/story";
import { Keeper } from "../src/ui/kept";

test("values are kept by name, and the ones changed longest ago go first", () => {
  const keeper = new Keeper(2);
  for (const name of ["a", "b", "a", "c"]) keeper.set(name, name);
  expect(["a", "b", "c"].map((name) => keeper.get(name))).toEqual(["a", undefined, "c"]);
});

test("when somebody else sits down nothing is left, and the page hears of it", () => {
  const keeper = new Keeper();
  let heard = 0;
  keeper.set("a", 1);
  keeper.subscribe(() => (heard += 1));
  keeper.clear();
  expect([keeper.get("a"), heard]).toEqual([undefined, 1]);
});

test("who listens hears of every change until they stop", () => {
  const keeper = new Keeper();
  let heard = 0;
  const stop = keeper.subscribe(() => (heard += 1));
  keeper.set("a", 1);
  stop();
  keeper.set("a", 2);
  expect(heard).toBe(1);
});

test("however often it is asked for, work is done one at a time, and once more after the last asking", async () => {
  let [going, most, done] = [0, 0, 0];
  const work = async () => {
    most = Math.max(most, (going += 1));
    await Promise.resolve();
    going -= 1;
    done += 1;
  };
  const ask = oneAtATime(work, new AbortController().signal, 0);
  for (let count = 0; count < 10; count += 1) ask();
  await vi.waitUntil(() => done === 2);
  expect([most, done]).toEqual([1, 2]);
});

test("entries of a story keep their names when it grows between them", () => {
  const entry = (time: string, name: string): StoryEntry => ({ time, kind: "event", name, detail: {} });
  const [a, b, c] = [entry("1", "x"), entry("1", "x"), entry("3", "y")];
  const before = named([a, b, c]).map(([name]) => name);
  expect(new Set(before).size).toBe(3);
  const after = named([a, b, entry("2", "x"), c]);
  expect(after.filter(([, one]) => one === a || one === b || one === c).map(([name]) => name)).toEqual(before);
});
