/** No word of an agent gets lost because it looks like a tag, and no tag is obeyed. */
import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { Markdown } from "../src/ui/Markdown";

const drawn = (text: string) => renderToStaticMarkup(createElement(Markdown, { text }));

test("tags are shown as the words they are", () => {
  expect(drawn("<script>alert(1)</script> said")).toBe('<div class="markdown"><p>&lt;script&gt;alert(1)&lt;/script&gt; said</p></div>');
  expect(drawn("<div>\nHello\n</div>")).toContain("&lt;div&gt;\nHello\n&lt;/div&gt;");
  expect(drawn("a <b>bold</b> word")).toContain("a &lt;b&gt;bold&lt;/b&gt; word");
  expect(drawn("> <i>x</i>")).toContain("&lt;i&gt;x&lt;/i&gt;");
});

test("a line broken by a tag is broken", () => {
  expect(drawn("| a |\n|---|\n| one<br>two<br/>three |")).toContain("one<br/>\ntwo<br/>\nthree");
});
