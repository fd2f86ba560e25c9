/**
 * What an agent wrote, as Markdown. It is treated as hostile: tags are shown as words and never obeyed, no images, no
 * styles, and of links only those that lead to the open web, named with their host so that nobody is misled.
 */
import { memo, type ReactNode } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { useWords } from "../words";
import { useCopy } from "./anywhere";
import { Icon } from "./icons";

interface Piece {
  type: string;
  value?: string;
  children?: Piece[];
}

/** Tags are words like any others: they are shown and do nothing. Only a broken line is what it says. */
export function tagsAsWords() {
  const spelled = (piece: Piece, block: boolean): Piece => {
    if (piece.type !== "html") return piece.children ? { ...piece, children: piece.children.map((one) => spelled(one, BLOCKS.has(piece.type))) } : piece;
    const words: Piece = /^<br\s*\/?>$/i.test(piece.value ?? "") ? { type: "break" } : { type: "text", value: piece.value ?? "" };
    return block ? { type: "paragraph", children: [words] } : words;
  };
  return (tree: Piece): Piece => spelled(tree, false);
}
const BLOCKS = new Set(["root", "blockquote", "listItem"]);

const PLUGINS = [remarkGfm, tagsAsWords];
const ALLOWED = ["a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "img", "input", "li", "ol", "p", "pre", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"];

/** An address that may be shown as a link, or null. */
export function safeLink(address: string | undefined, base?: string): URL | null {
  try {
    const url = new URL(address ?? "", base);
    if (url.username || url.password) return null;
    return url.protocol === "https:" || url.protocol === "http:" || url.protocol === "mailto:" ? url : null;
  } catch {
    return null;
  }
}

/** A link that says where it leads. `base`: what an address without a host belongs to; without it such an address is no link. */
export function SafeLink({ href, base, children }: { href: string | undefined; base?: string; children: ReactNode }) {
  const url = safeLink(href, base);
  if (!url) return <span className="dead-link">{children}</span>;
  const open = tells(children, url);
  return (
    <a href={url.href} target="_blank" rel="noopener noreferrer nofollow">
      {open ? children : <bdi>{children}</bdi>}
      {!open && <bdi className="link-host">({whereTo(url)})</bdi>}
    </a>
  );
}

/** The host a link leads to, as the network knows it (other scripts in punycode), or whom a mail goes to. */
function whereTo(url: URL): string {
  return url.protocol === "mailto:" ? url.pathname || url.search : url.host;
}

/** Whether a label is itself the address it leads to, letter by letter: one that only contains it may mislead. */
function tells(label: ReactNode, url: URL): boolean {
  if (typeof label !== "string" || !/^[!-~]+$/.test(label)) return false;
  const where = whereTo(url);
  if (label === where) return true;
  const start = `${url.protocol}//${where}`;
  return label.startsWith(start) && /^([/?#]|$)/.test(label.slice(start.length));
}

const COMPONENTS: Components = {
  a: ({ href, children }) => <SafeLink href={href}>{children}</SafeLink>,
  img: ({ alt }) => <BlockedImage alt={alt} />,
  input: ({ checked }) => <Tick done={checked === true} />,
  pre: ({ children }) => <>{children}</>,
  code: ({ className, children }) => <Code className={className}>{children}</Code>,
  table: ({ children }) => (
    <div className="table-wrap" tabIndex={0}>
      <table>{children}</table>
    </div>
  ),
  h1: ({ children }) => <h3>{children}</h3>,
  h2: ({ children }) => <h3>{children}</h3>,
  h3: ({ children }) => <h4>{children}</h4>,
  h4: ({ children }) => <h5>{children}</h5>,
  h5: ({ children }) => <h6>{children}</h6>,
};

/** The only field Markdown knows: a thing to do, done or not. Nobody can press it. */
function Tick({ done }: { done: boolean }) {
  const { t } = useWords();
  return <input type="checkbox" disabled checked={done} readOnly aria-label={t(done ? "chat.task_done" : "chat.task_open")} />;
}

function BlockedImage({ alt }: { alt: string | undefined }) {
  const { t } = useWords();
  return (
    <span className="blocked-image">
      [{t("chat.image_blocked")}
      {alt ? `: ${alt}` : ""}]
    </span>
  );
}

function Code({ className, children }: { className: string | undefined; children: ReactNode }) {
  const text = Array.isArray(children) ? children.join("") : typeof children === "string" ? children : "";
  const language = /language-([\w+#-]{1,30})/.exec(className ?? "")?.[1];
  if (!language && !text.includes("\n")) return <code>{children}</code>;
  return <CodeBlock text={text.replace(/\n$/, "")} language={language} />;
}

export function CodeBlock({ text, language }: { text: string; language?: string | undefined }) {
  const { t } = useWords();
  return (
    <div className="code-block">
      <div className="code-head">
        <span>{language ?? ""}</span>
        <CopyButton text={text} label={t("app.copy")} />
      </div>
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
    </div>
  );
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  const { t } = useWords();
  const { copy, copied, byHand } = useCopy(text);
  return (
    <>
      <button type="button" className="icon-button" onClick={copy} aria-label={copied ? t("app.copied") : label} title={copied ? t("app.copied") : label}>
        <Icon name={copied ? "check" : "copy"} size={16} />
      </button>
      {byHand}
    </>
  );
}

export const Markdown = memo(function Markdown({ text }: { text: string }) {
  return (
    <div className="markdown">
      <ReactMarkdown remarkPlugins={PLUGINS} allowedElements={ALLOWED} unwrapDisallowed skipHtml components={COMPONENTS}>
        {text}
      </ReactMarkdown>
    </div>
  );
});
