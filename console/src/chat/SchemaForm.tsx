/** A small form from a JSON schema, for questions of agents: texts, numbers, choices, yes or no. The rest is a line of text. */
import { useId } from "react";
import { asList, asRecord, asText } from "../model/events";

export type Values = Record<string, unknown>;
interface Field {
  name: string;
  label: string;
  type: string;
  options: string[];
  required: boolean;
}

export function fieldsOf(schema: Record<string, unknown> | null): Field[] {
  const required = asList(schema?.["required"]);
  return Object.entries(asRecord(schema?.["properties"])).map(([name, given]) => {
    const field = asRecord(given);
    const label = asText(field["title"]) || asText(field["description"]) || name;
    return { name, label, type: asText(field["type"]) || "string", options: asList(field["enum"]).map(String), required: required.includes(name) };
  });
}

/** Whether everything that must be told is told. */
export function isFilled(fields: Field[], values: Values): boolean {
  return fields.every((field) => !field.required || (values[field.name] !== undefined && values[field.name] !== ""));
}

export function SchemaForm({ fields, values, onChange }: { fields: Field[]; values: Values; onChange: (values: Values) => void }) {
  const id = useId();
  const set = (name: string, value: unknown) => onChange({ ...values, [name]: value });
  return fields.map((field) => {
    const common = { id: `${id}-${field.name}`, required: field.required };
    return (
      <div key={field.name} className="field">
        <label htmlFor={common.id}>{field.label}</label>
        {field.options.length > 0 ? (
          <select {...common} value={asText(values[field.name])} onChange={(event) => set(field.name, event.target.value)}>
            <option value="" />
            {field.options.map((option) => (
              <option key={option}>{option}</option>
            ))}
          </select>
        ) : field.type === "boolean" ? (
          <input {...common} required={false} type="checkbox" checked={values[field.name] === true} onChange={(event) => set(field.name, event.target.checked)} />
        ) : field.type === "number" || field.type === "integer" ? (
          <input {...common} type="number" step={field.type === "integer" ? 1 : "any"} value={String(values[field.name] ?? "")} onChange={(event) => set(field.name, event.target.value === "" ? undefined : Number(event.target.value))} />
        ) : (
          <input {...common} value={asText(values[field.name])} onChange={(event) => set(field.name, event.target.value)} />
        )}
      </div>
    );
  });
}
