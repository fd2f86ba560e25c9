/** A text longer than a message may be: said while it can still be shortened, and never cut. */
import { useWords } from "../words";

const MOST = 10_000;

/** How many characters it has, as the host counts them, when those are too many; else 0. */
export function tooMany(text: string): number {
  const count = text.length > MOST ? [...text.trim()].length : 0;
  return count > MOST ? count : 0;
}

export function TooLong({ text }: { text: string }) {
  const { t, number } = useWords();
  const count = tooMany(text);
  if (!count) return null;
  return (
    <p className="error-text" role="alert">
      {t("chat.too_long", { count: number(count), most: number(MOST) })}
    </p>
  );
}
