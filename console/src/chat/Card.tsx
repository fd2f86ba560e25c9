/**
 * A UiSchema document drawn with the console's own parts. The host has compiled it; all the same nothing here trusts it:
 * unknown nodes show their fallback text or nothing, links are checked, images come from the store only.
 */
import type { FormEvent, ReactNode } from "react";
import { asList, asRecord, asText } from "../model/events";
import { useCopy } from "../ui/anywhere";
import { asProblem, sentence } from "../ui/data";
import { Folded, useKept } from "../ui/kept";
import { SafeLink } from "../ui/Markdown";
import { useWords } from "../words";
import { FileLink } from "../ui/StoredFile";
import { StoreImage } from "./StoreImage";

type Node = Record<string, unknown>;
interface Use {
  /** Nothing can be pressed any more, or not just now. */
  done: boolean;
  press: (ref: string, values: Record<string, unknown>) => void;
}

export function Card({ document, press }: { document: Node; press: (ref: string, values: Record<string, unknown>) => Promise<unknown> }) {
  const { t } = useWords();
  const [done, setDone] = useKept("done", false);
  const [problem, setProblem] = useKept<string | null>("problem", null);
  const root = asRecord(document.root);
  if (!root.type) return null;
  const use = (ref: string, values: Record<string, unknown>) => {
    setDone(true);
    press(ref, values)
      .then(() => setProblem(null))
      .catch((error: unknown) => {
        setDone(false);
        setProblem(sentence(asProblem(error), t));
      });
  };
  return (
    <section className={`card status-${asText(document.status) || "info"}`} aria-label={t("chat.made_by_agent")}>
      <NodeView node={root} use={{ done, press: use }} />
      {problem && (
        <p className="error-text" role="alert">
          {problem}
        </p>
      )}
    </section>
  );
}

/** A card that says nothing and only offers answers. */
export function isOnlyButtons(document: Node): boolean {
  const within = (node: Node): boolean => {
    if (node.type === "text" || node.type === "button") return true;
    return node.type === "stack" && asList(node.children).map(asRecord).every(within);
  };
  return within(asRecord(document.root));
}

function Children({ of, use }: { of: Node; use: Use }) {
  return asList(of.children).map((child, index) => <NodeView key={asText(asRecord(child).key) || index} node={asRecord(child)} use={use} />);
}

function NodeView({ node, use }: { node: Node; use: Use }): ReactNode {
  const draw = DRAWN[asText(node.type)];
  if (draw) return draw(node, use);
  return node.fallback ? <p>{asText(node.fallback)}</p> : null;
}

const DRAWN: Record<string, (node: Node, use: Use) => ReactNode> = {
  stack: (node, use) => (
    <div className={`ui-stack ${asText(node.direction) || "vertical"} gap-${asText(node.gap) || "small"} ${asText(node.appearance)} align-${asText(node.align)}`}>
      <Children of={node} use={use} />
    </div>
  ),
  grid: (node, use) => (
    <div className={`ui-grid columns-${Math.min(4, Math.max(1, Number(node.columns) || 2))}`}>
      <Children of={node} use={use} />
    </div>
  ),
  list: (node, use) => {
    const items = asList(node.children).map((child, index) => (
      <li key={index}>
        <NodeView node={asRecord(child)} use={use} />
      </li>
    ));
    return node.ordered === true ? <ol>{items}</ol> : <ul>{items}</ul>;
  },
  divider: () => <hr />,
  collapse: (node, use) => (
    <Folded name={asText(node.key) || asText(node.label)} open={node.open === true}>
      <summary>{asText(node.label)}</summary>
      <Children of={node} use={use} />
    </Folded>
  ),
  text: (node) => <TextNode role={asText(node.role)} content={asText(node.content)} />,
  badge: (node) => <span className={`badge ui-${asText(node.status)}`}>{asText(node.label)}</span>,
  icon: (node) => <span className="ui-icon">{SIGNS[asText(node.name)] ?? "•"}</span>,
  image: (node) => <StoreImage url={asText(node.url)} id={asText(node.artifact_id)} alt={asText(node.alt)} />,
  file: (node) =>
    node.url ? (
      <SafeLink href={asText(node.url)} base={location.href}>
        {asText(node.name)}
      </SafeLink>
    ) : node.artifact_id ? (
      <FileLink id={asText(node.artifact_id)} name={asText(node.name)} size={null} />
    ) : (
      <span>{asText(node.name)}</span>
    ),
  link: (node) => <SafeLink href={asText(node.href)}>{asText(node.label)}</SafeLink>,
  kv: (node) => (
    <dl className="ui-kv">
      {asList(node.items).map((item, index) => (
        <div key={index}>
          <dt>{asText(asRecord(item).label)}</dt>
          <dd>{asText(asRecord(item).value)}</dd>
        </div>
      ))}
    </dl>
  ),
  table: (node) => <TableNode node={node} />,
  progress: (node) => (
    <label className="ui-progress">
      <span>{asText(node.label)}</span>
      <progress max={100} value={Number(node.value) || 0} />
    </label>
  ),
  steps: (node) => (
    <ol className="ui-steps">
      {asList(node.items).map((item, index) => (
        <li key={index} className={asText(asRecord(item).state)}>
          {asText(asRecord(item).label)}
        </li>
      ))}
    </ol>
  ),
  chart: (node) => <ChartNode node={node} />,
  button: (node, use) => <ButtonNode label={asText(node.label)} action={asRecord(node.action)} use={use} />,
  form: (node, use) => <FormNode node={node} use={use} />,
};

const SIGNS: Record<string, string> = {
  info: "ℹ",
  success: "✓",
  warning: "⚠",
  error: "✕",
  pending: "…",
  calendar: "🗓",
  clock: "◷",
  file: "🗎",
  link: "↗",
  person: "☺",
  place: "⌂",
  search: "⌕",
  star: "★",
};

function TextNode({ role, content }: { role: string; content: string }) {
  if (role === "title") return <h4>{content}</h4>;
  if (role === "subtitle") return <h5>{content}</h5>;
  if (role === "code") return <pre tabIndex={0}>{content}</pre>;
  return <p className={role === "caption" ? "hint" : "ui-text"}>{content}</p>;
}

function TableNode({ node }: { node: Node }) {
  return (
    <div className="table-wrap" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {asList(node.columns).map((name, index) => (
              <th key={index} scope="col">
                {asText(name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {asList(node.rows).map((row, at) => (
            <tr key={at}>
              {asList(row).map((cell, index) => (
                <td key={index}>{asText(cell)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Every kind as bars with their numbers: it reads the same by eye, by ear and at 360 pixels. */
function ChartNode({ node }: { node: Node }) {
  const points = asList(node.points).map(asRecord);
  const most = Math.max(1e-9, ...points.map((point) => Math.abs(Number(point.value) || 0)));
  return (
    <ul className="ui-chart">
      {points.map((point, index) => (
        <li key={index}>
          <span>{asText(point.label)}</span>
          <meter min={0} max={most} value={Math.abs(Number(point.value) || 0)} />
          <b>{String(point.value)}</b>
        </li>
      ))}
    </ul>
  );
}

function ButtonNode({ label, action, use }: { label: string; action: Node; use: Use }) {
  switch (action.kind) {
    case "open":
      return <SafeLink href={asText(action.href)}>{label}</SafeLink>;
    case "copy":
      return <CopyNode label={label} text={asText(action.text)} />;
    default:
      return (
        <button type="button" className="button" disabled={use.done || !action.ref} onClick={() => use.press(asText(action.ref), {})}>
          {label}
        </button>
      );
  }
}

function CopyNode({ label, text }: { label: string; text: string }) {
  const { t } = useWords();
  const { copy, copied, byHand } = useCopy(text);
  return (
    <>
      <button type="button" className="button" onClick={copy}>
        {copied ? t("app.copied") : label}
      </button>
      {byHand}
    </>
  );
}

function FormNode({ node, use }: { node: Node; use: Use }) {
  const fields = asList(node.fields).map(asRecord);
  const [values, setValues] = useKept<Record<string, string | boolean>>(asText(node.key) || asText(asRecord(node.action).ref), {});
  const set = (name: string, value: string | boolean) => setValues((before) => ({ ...before, [name]: value }));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    use.press(asText(asRecord(node.action).ref), filledIn(fields, values));
  };
  return (
    <form className="ui-form" onSubmit={submit}>
      {fields.map((field) => {
        const name = asText(field.name);
        const common = { required: field.required === true, disabled: use.done, value: asText(values[name]), onChange: (event: { target: { value: string } }) => set(name, event.target.value) };
        return (
          <label key={name} className="field">
            <span>{asText(field.label)}</span>
            {field.input === "choice" ? (
              <select {...common}>
                <option value="" />
                {asList(field.options).map((option) => (
                  <option key={asText(option)}>{asText(option)}</option>
                ))}
              </select>
            ) : field.input === "toggle" ? (
              <input type="checkbox" disabled={use.done} checked={values[name] === true} onChange={(event) => set(name, event.target.checked)} />
            ) : (
              <input type={field.input === "number" ? "number" : field.input === "date" ? "date" : "text"} {...common} />
            )}
          </label>
        );
      })}
      <button type="submit" className="button primary" disabled={use.done}>
        {asText(node.submit)}
      </button>
    </form>
  );
}

/** The fields as the host wants them: numbers as numbers, yes and no as such, what was left empty left out. */
function filledIn(fields: Node[], values: Record<string, string | boolean>): Record<string, unknown> {
  const given = fields.flatMap((field): [string, unknown][] => {
    const name = asText(field.name);
    const value = field.input === "toggle" ? values[name] === true : values[name];
    if (value === undefined || value === "") return [];
    return [[name, field.input === "number" ? Number(value) : value]];
  });
  return Object.fromEntries(given);
}
