/** Bars over time: the whole, and in front of it a part of it. Read by eye, and by ear as a table. */
import { useWords } from "../words";
import { UNKNOWN } from "../words/said";

export interface Bar {
  start: string;
  /** Null is not known, which is not zero: there is no bar, and it is said. */
  whole: number | null;
  part: number | null;
  tone: "bad" | "busy";
}
interface Props {
  title: string;
  since: string;
  every: number;
  bars: Bar[];
  /** What the whole and the part are called. */
  names: [string, string];
  show: (value: number) => string;
}
const HEIGHT = 120;

export function Chart({ title, since, every, bars, names, show }: Props) {
  const { moment } = useWords();
  const start = Date.parse(since);
  const step = every * 1000;
  const count = Math.max(1, Math.ceil((Date.now() - start) / step));
  const most = Math.max(1e-9, ...bars.map((bar) => bar.whole ?? 0));
  const width = 600 / count;
  const tall = (value: number | null) => (value === null ? 0 : Math.max(value > 0 ? 2 : 0, (value / most) * HEIGHT));
  const said = (value: number | null) => (value === null ? UNKNOWN : show(value));
  return (
    <figure className="chart">
      <figcaption>
        <strong>{title}</strong>
        <span className="key whole">{names[0]}</span>
        <span className={`key ${bars[0]?.tone ?? ""}`}>{names[1]}</span>
      </figcaption>
      <div className="plot">
        <span className="top">{bars.some((bar) => bar.whole !== null) ? show(most) : UNKNOWN}</span>
        <svg viewBox={`0 0 600 ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
          <line x1="0" y1="0.5" x2="600" y2="0.5" />
          <line x1="0" y1={HEIGHT / 2} x2="600" y2={HEIGHT / 2} />
          <line x1="0" y1={HEIGHT - 0.5} x2="600" y2={HEIGHT - 0.5} />
          {bars.map((bar) => {
            const x = Math.floor((Date.parse(bar.start) - start) / step) * width;
            const common = { x: x + width * 0.12, width: width * 0.76 };
            return (
              <g key={bar.start}>
                <rect className="bar-whole" {...common} y={HEIGHT - tall(bar.whole)} height={tall(bar.whole)} />
                <rect className={`bar-${bar.tone}`} {...common} y={HEIGHT - tall(bar.part)} height={tall(bar.part)} />
              </g>
            );
          })}
        </svg>
      </div>
      <div className="axis" aria-hidden="true">
        <span>{moment(start)}</span>
        <span>{moment(start + (count * step) / 2)}</span>
        <span>{moment(start + count * step)}</span>
      </div>
      <div className="visually-hidden">
        <table>
          <caption>{title}</caption>
          <tbody>
            {bars.map((bar) => (
              <tr key={bar.start}>
                <th scope="row">{moment(bar.start)}</th>
                <td>{`${names[0]} ${said(bar.whole)}`}</td>
                <td>{`${names[1]} ${said(bar.part)}`}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </figure>
  );
}
