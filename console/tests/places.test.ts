/** Where words stand, and the address of a message that was found. */
import { expect, test } from "vitest";
import { placesIn } from "../src/model/places";
import { placeOf, toMessage } from "../src/ui/router";

test("words are found in either size, each time, in the order they stand", () => {
  expect(placesIn("Tea, tea and 乌龙茶", ["tea", "龙茶"])).toEqual([[0, 3], [5, 8], [14, 16]]);
});

test("nothing is found where there is nothing to look for, or a letter has no second size of its own length", () => {
  expect(placesIn("tea", ["", "coffee"])).toEqual([]);
  expect(placesIn("İstanbul tea", ["tea"])).toEqual([]);
});

test("the address of a message says which, and the words it was found by", () => {
  const sought = { item: "0199-7000.1", words: ["a&b", "预算"] };
  expect(placeOf(toMessage("t-1", sought))).toMatchObject({ page: "chat", thread: "t-1", sought });
  expect(placeOf("#/t/t-1")).toMatchObject({ thread: "t-1", sought: null });
  expect(placeOf("#/t/t-1?at=<script>")).toMatchObject({ sought: null });
});
