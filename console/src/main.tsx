/** The door of the console: puts the page into its place. */
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./ui/App";
import { chosenTheme, showTheme } from "./ui/theme";
import { Speaking } from "./words";
import "./styles.css";

showTheme(chosenTheme());
const root = document.getElementById("root");
if (root)
  createRoot(root).render(
    <StrictMode>
      <Speaking>
        <App />
      </Speaking>
    </StrictMode>,
  );
