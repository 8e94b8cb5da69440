// Unpack the browser that lies in the package, and print where it is.
import chromium from "@sparticuz/chromium";

console.log(await chromium.executablePath());
