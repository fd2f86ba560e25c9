/** A table with a heading, that scrolls by itself when it is wider than the page. */
import type { ReactNode } from "react";
import type { Problem } from "../api/client";
import { Empty, ProblemNotice } from "../ui/parts";
import type { IconName } from "../ui/icons";
import { useWords } from "../words";

export interface Column<T> {
  name: string;
  show: (row: T) => ReactNode;
}
interface Props<T> {
  title?: string;
  columns: Column<T>[];
  rows: T[] | null;
  keyOf: (row: T) => string;
  empty: string;
  icon: IconName;
  problem?: Problem | null;
  again?: () => void;
  children?: ReactNode;
}

export function Listing<T>({ title, columns, rows, keyOf, empty, icon, problem, again, children }: Props<T>) {
  const { t } = useWords();
  return (
    <section className="panel">
      {title && <h2>{title}</h2>}
      {children}
      {problem && <ProblemNotice problem={problem} {...(again ? { again } : {})} />}
      {!rows && !problem && <p className="hint">{t("app.loading")}</p>}
      {rows?.length === 0 && <Empty icon={icon}>{empty}</Empty>}
      {rows && rows.length > 0 && (
        <div className="table-wrap" tabIndex={0}>
          <table className="full listing">
            <thead>
              <tr>
                {columns.map((column) => (
                  <th key={column.name} scope="col">
                    {column.name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={keyOf(row)}>
                  {columns.map((column) => (
                    <td key={column.name} data-label={column.name}>
                      {column.show(row)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
