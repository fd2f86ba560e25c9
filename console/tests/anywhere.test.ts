/** The console needs nothing that a browser offers only on https. */
import { readFileSync, readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { newId } from "../src/ui/anywhere";

const SECURE_ONLY =
  /randomUUID|crypto\.subtle|navigator\.(clipboard|serviceWorker|mediaDevices|geolocation|credentials|locks|storage|share|wakeLock|permissions|usb|bluetooth|keyboard|gpu)|\bNotification\(|PushManager|\bcaches\.|cookieStore|show(OpenFile|SaveFile|Directory)Picker|PaymentRequest|DeviceMotionEvent|execCommand/;

test("only one module uses what is there in secure contexts only", () => {
  const root = new URL("../src/", import.meta.url);
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) => /\.tsx?$/.test(name));
  expect(files.length).toBeGreaterThan(40);
  const used = files.filter((name) => SECURE_ONLY.test(readFileSync(new URL(name, root), "utf8")));
  expect(used).toEqual(["ui/anywhere.tsx"]);
});

test("ids are random UUIDs of version 4", () => {
  const made = Array.from({ length: 1000 }, newId);
  expect(new Set(made).size).toBe(1000);
  for (const id of made) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});
