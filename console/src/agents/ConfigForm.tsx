/**
 * A form made from a runner's `config_schema`: one field for each entry, in the person's language. Kinds that are not
 * known are edited as JSON, so nothing a runner asks for is out of reach.
 */
import { useEffect, useId, useRef, useState } from "react";
import type { Localised } from "../api/shapes";
import { asList, asRecord, asText } from "../model/events";
import { useWords, type Speaker } from "../words";

export interface FormItem {
  name: string;
  type: string;
  label?: Record<string, string> | string;
  description?: Record<string, string> | string;
  required?: boolean;
  default?: unknown;
  options?: unknown[];
  host_only?: boolean;
}
export interface Offers {
  models: { modelId: string; type: string; default: boolean }[];
  tools: { name: string; readOnly: boolean }[];
  bases: string[];
}
type Values = Record<string, unknown>;

const ALIASES: Record<string, string> = {
  "select-llm-model": "llm-model-selector",
  "select-knowledge-bases": "knowledge-base-multi-selector",
  int: "integer",
  float: "number",
  bool: "boolean",
};

export function readSchema(manifest: unknown): FormItem[] {
  return asList(asRecord(manifest)["config_schema"])
    .map(asRecord)
    .filter((item) => typeof item["name"] === "string")
    .map((item) => ({ ...item, name: asText(item["name"]), type: asText(item["type"]) || "string" }) as FormItem);
}

interface FormProps {
  schema: FormItem[];
  values: Values;
  offers: Offers;
  /** Texts that are not JSON yet, by field. */
  unread: Record<string, string>;
  onChange: (values: Values, field: string) => void;
  onUnread: (field: string, text: string) => void;
}

export function ConfigForm({ schema, values, offers, unread, onChange, onUnread }: FormProps) {
  const { t } = useWords();
  if (!schema.length) return <p className="hint">{t("ag.no_config")}</p>;
  return schema.map((item) => (
    <Field
      key={item.name}
      item={item}
      offers={offers}
      value={values[item.name]}
      unread={unread[item.name]}
      onUnread={(text) => onUnread(item.name, text)}
      onChange={(value) => {
        const next = { ...values };
        if (value === undefined) delete next[item.name];
        else next[item.name] = value;
        onChange(next, item.name);
      }}
    />
  ));
}

interface FieldProps {
  item: FormItem;
  value: unknown;
  offers: Offers;
  unread: string | undefined;
  onChange: (value: unknown) => void;
  onUnread: (text: string) => void;
}

function Field(props: FieldProps) {
  const { item } = props;
  const { t, pick } = useWords();
  const id = useId();
  const secret = item.type === "password";
  const help = [pick(item.description), secret && t("ag.secret"), item.host_only && t("ag.host_only")].filter(Boolean).join(" ");
  return (
    <div className="field" data-field={item.name}>
      <label htmlFor={id}>
        <b>{pick(item.label) || item.name}</b>
        {item.required && <span aria-hidden="true"> *</span>}
      </label>
      <Control {...props} id={id} helpId={help ? `${id}-help` : undefined} />
      {help && (
        <small id={`${id}-help`} className="hint">
          {help}
        </small>
      )}
    </div>
  );
}

interface ControlProps extends FieldProps {
  id: string;
  helpId: string | undefined;
}

function Control({ item, value, offers, unread, onChange, onUnread, id, helpId }: ControlProps) {
  const { t, pick } = useWords();
  const shown = value ?? item.default;
  const unnamed = offers.models.find((one) => one.default);
  const models = (type: string) => offers.models.filter((one) => one.type === type).map((one): [string, string] => [one.modelId, one.modelId]);
  const common = { id, "aria-describedby": helpId, required: item.required === true };
  const text = (given: string) => onChange(given === "" && !item.required ? undefined : given);
  switch (ALIASES[item.type] ?? item.type) {
    case "string":
      return <input {...common} value={asText(shown)} onChange={(event) => text(event.target.value)} />;
    case "password":
      return <input {...common} type="password" autoComplete="off" value={asText(value)} onChange={(event) => text(event.target.value)} />;
    case "text":
      return <textarea {...common} rows={4} value={asText(shown)} onChange={(event) => text(event.target.value)} />;
    case "integer":
    case "number":
      return <input {...common} type="number" step={item.type === "integer" ? 1 : "any"} value={typeof shown === "number" ? shown : ""} onChange={(event) => onChange(event.target.value === "" ? undefined : Number(event.target.value))} />;
    case "boolean":
      return <input {...common} required={false} type="checkbox" checked={shown === true} onChange={(event) => onChange(event.target.checked)} />;
    case "select":
      return <Select common={common} options={optionsOf(item, pick)} value={asText(shown)} onChange={text} />;
    case "llm-model-selector":
      return <Select common={common} options={models("llm")} value={asText(shown)} onChange={text} none={unnamed ? t("ag.default_model", { model: unnamed.modelId }) : ""} />;
    case "rerank-model-selector":
      return <Select common={common} options={models("rerank")} value={asText(shown)} onChange={text} />;
    case "embedding-model-selector":
      return <Select common={common} options={models("embedding")} value={asText(shown)} onChange={text} />;
    case "model-fallback-selector":
      return <Fallbacks common={common} value={shown} models={models("llm").map(([name]) => name)} onChange={onChange} />;
    case "knowledge-base-multi-selector":
      return <Several names={offers.bases} chosen={asList(shown).map(asText)} onChange={onChange} />;
    case "prompt-editor":
      return <PromptEditor common={common} value={shown} onChange={onChange} />;
    default:
      return <JsonField common={common} value={shown} unread={unread} onChange={onChange} onUnread={onUnread} />;
  }
}

type Common = { id: string; "aria-describedby": string | undefined; required: boolean };

function optionsOf(item: FormItem, pick: Speaker["pick"]): [string, string][] {
  return (item.options ?? []).map((option) => {
    const given = asRecord(option);
    const name = typeof option === "string" ? option : asText(given["name"]) || asText(given["value"]);
    return [name, pick(given["label"] as Localised | undefined) || name];
  });
}

/** `none`: what it means to choose nothing. */
function Select({ common, options, value, onChange, none = "" }: { common: Common; options: [string, string][]; value: string; onChange: (value: string) => void; none?: string }) {
  const known = options.some(([name]) => name === value);
  return (
    <select {...common} value={value} onChange={(event) => onChange(event.target.value)}>
      <option value="">{none}</option>
      {value && !known && <option value={value}>{value}</option>}
      {options.map(([name, label]) => (
        <option key={name} value={name}>
          {label}
        </option>
      ))}
    </select>
  );
}

function Fallbacks({ common, value, models, onChange }: { common: Common; value: unknown; models: string[]; onChange: (value: unknown) => void }) {
  const given = asRecord(value);
  const primary = typeof value === "string" ? value : asText(given["primary"]);
  const fallbacks = asList(given["fallbacks"]).map(asText);
  const set = (first: string, rest: string[]) => onChange(rest.length ? { primary: first, fallbacks: rest } : first || undefined);
  return (
    <>
      <Select common={common} options={models.map((name) => [name, name])} value={primary} onChange={(name) => set(name, fallbacks)} />
      <Several names={models.filter((name) => name !== primary)} chosen={fallbacks} onChange={(names) => set(primary, names ?? [])} />
    </>
  );
}

export function Several({ names, chosen, onChange }: { names: string[]; chosen: string[]; onChange: (names: string[] | undefined) => void }) {
  const all = [...new Set([...names, ...chosen])];
  return (
    <div className="chips">
      {all.map((name) => (
        <label key={name} className="choice">
          <input type="checkbox" checked={chosen.includes(name)} onChange={(event) => onChange(event.target.checked ? [...chosen, name] : chosen.filter((one) => one !== name))} />
          {name}
        </label>
      ))}
    </div>
  );
}

/** A prompt is a list of {role, content}; the first system entry is what people edit. */
function PromptEditor({ common, value, onChange }: { common: Common; value: unknown; onChange: (value: unknown) => void }) {
  if (typeof value === "string" || value === undefined) return <textarea {...common} rows={6} value={asText(value)} onChange={(event) => onChange(event.target.value || undefined)} />;
  const entries = asList(value).map(asRecord);
  const set = (index: number, content: string) => onChange(entries.map((entry, at) => (at === index ? { ...entry, content } : entry)));
  return entries.map((entry, index) => <textarea key={index} {...common} id={index ? `${common.id}-${index}` : common.id} rows={6} aria-label={asText(entry["role"])} value={asText(entry["content"])} onChange={(event) => set(index, event.target.value)} />);
}

interface JsonProps {
  common: Common;
  value: unknown;
  unread: string | undefined;
  onChange: (value: unknown) => void;
  onUnread: (text: string) => void;
}

function JsonField({ common, value, unread, onChange, onUnread }: JsonProps) {
  const [text, setText] = useState(unread ?? (value === undefined ? "" : JSON.stringify(value, null, 2)));
  const wrong = whyNot(text);
  const change = (given: string) => {
    setText(given);
    if (whyNot(given) === null) onChange(given.trim() ? JSON.parse(given) : undefined);
    else onUnread(given);
  };
  // What cannot be read is not what would be saved: the form is not sent until it can be.
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.setCustomValidity(wrong ?? ""), [wrong]);
  return (
    <>
      <textarea {...common} ref={field} rows={4} className="mono" aria-invalid={wrong !== null} value={text} onChange={(event) => change(event.target.value)} />
      {wrong && <small className="error-text">{wrong}</small>}
    </>
  );
}

/** Why a text is no JSON; null when it is, or when there is none. */
function whyNot(text: string): string | null {
  if (!text.trim()) return null;
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
