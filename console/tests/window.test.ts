import { describe, expect, it } from "vitest";
import { drawnIn, entryAt, placesOf } from "../src/model/window";

const hundred = placesOf(10_000, () => 100);

describe("the part of a long list that is drawn", () => {
  it("is what is in sight and a little around it, with the heights of the rest", () => {
    const { runs, after } = drawnIn(hundred, 500_000, 500_800, 300, null);
    expect(runs).toEqual([{ before: 499_700, from: 4_997, to: 5_012 }]);
    expect(after).toBe(1_000_000 - 501_200);
  });

  it("has the same height at every place, with and without an entry that is kept", () => {
    for (const kept of [null, 0, 42, 9_999])
      for (let top = -1_000; top < 1_001_000; top += 7_919) {
        const { runs, after } = drawnIn(hundred, top, top + 800, 900, kept);
        const drawn = runs.reduce((sum, run) => sum + run.before + (run.to - run.from) * 100, 0);
        expect(drawn + after).toBe(1_000_000);
        expect(runs.reduce((sum, run) => sum + run.to - run.from, 0)).toBeLessThan(30);
        if (kept !== null) expect(runs.some((run) => run.from <= kept && kept < run.to)).toBe(true);
      }
  });

  it("is nothing of nothing, and all of a short list", () => {
    expect(drawnIn(placesOf(0, () => 1), 0, 800, 900, null)).toEqual({ runs: [], after: 0 });
    expect(drawnIn(placesOf(3, () => 100), 0, 800, 900, null)).toEqual({ runs: [{ before: 0, from: 0, to: 3 }], after: 0 });
  });

  it("finds the entry at a height, also beyond both ends", () => {
    const places = placesOf(4, (index) => (index + 1) * 10);
    expect([-5, 0, 9, 10, 29, 30, 99, 100, 500].map((height) => entryAt(places, height))).toEqual([0, 0, 0, 1, 1, 2, 3, 3, 3]);
  });
});
