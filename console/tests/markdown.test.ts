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

const MISLEADING = [
  ["[https://bank.example](https://evil.example/x)", "evil.example"],
  ["[https://bank.example/?evil.example](https://evil.example/x)", "evil.example"],
  ["[evil.example.bank.example](https://evil.example/x)", "evil.example"],
  ["[https://evil.example.bank.example/](https://evil.example/x)", "evil.example"],
  ["[https://evil.example@bank.example/](https://evil.example/x)", "evil.example"],
  ["[https://evil.example\u202e/moc.knab//:sptth](https://evil.example/)", "evil.example"],
  ["[**https://bank.example**](https://evil.example/x)", "evil.example"],
  ["[https://evil.example](https://evil.example:8443/x)", "evil.example:8443"],
  ["[https://\u0430pple.example](https://\u0430pple.example)", "xn--pple-43d.example"],
  ["https://\u0430pple.example/", "xn--pple-43d.example"],
  ["[help@bank.example](mailto:thief@evil.example)", "thief@evil.example"],
  ["[write us](mailto:?to=thief@evil.example)", "?to=thief@evil.example"],
  ["[http://evil.example/](https://evil.example/)", "evil.example"],
] as const;

test.each(MISLEADING)("%s shows where it leads", (text, host) => {
  expect(drawn(text)).toContain(`<bdi class="link-host">(${host})</bdi>`);
});

test.each(["https://evil.example/x?y#z", "[evil.example](https://evil.example/x)", "www.evil.example", "a@evil.example", "<https://evil.example>"])("%s says itself where it leads", (text) => {
  expect(drawn(text)).toContain('<a href="');
  expect(drawn(text)).not.toContain("link-host");
});

test("a link tells the page behind it nothing of this one", () => {
  expect(drawn("[a](https://example.org)")).toContain('target="_blank" rel="noopener noreferrer nofollow"');
});

test.each(["javascript:alert(1)", "JavaScript:alert(1)", "java\tscript:alert(1)", "data:text/html,x", "vbscript:x", "blob:https://a.example/1", "file:///etc/passwd", "https://bank.example@evil.example/", "//evil.example", "/api/v1/api-keys", "#/operate/keys"])(
  "%s is no link",
  (address) => expect(drawn(`[x](<${address}>)`)).not.toContain("<a"),
);
