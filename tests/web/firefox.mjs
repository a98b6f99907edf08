// A page of Firefox: one line of JSON in, `[command, ...arguments]`; one out, a result or a reason.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const [home, firefox, listener, limit] = process.argv.slice(2);
const puppeteer = createRequire(`${home}/`)('puppeteer-core'), timeout = Number(limit);
const browser = await puppeteer.launch({ browser: 'firefox', executablePath: firefox,
  timeout: 3 * timeout, protocolTimeout: 3 * timeout, defaultViewport: { width: 1280, height: 800 } });
const page = await browser.newPage(), errors = [];
page.setDefaultTimeout(timeout);
page.on('console', said => said.type() === 'error' && errors.push(said.text()));
page.on('pageerror', error => errors.push(String(error)));
await page.evaluateOnNewDocument(listener);

const does = {
  open: async url => { await page.goto(url); },
  reload: async () => { await page.reload(); },
  click: where => page.locator(where).click(),
  fill: (where, text) => page.locator(where).fill(text),
  type: text => page.keyboard.type(text),
  press: key => page.keyboard.press(key),
  chord: async (...keys) => {
    for (const key of keys) await page.keyboard.down(key);
    for (const key of keys.reverse()) await page.keyboard.up(key);
  },
  shows: async where => { await page.waitForSelector(where, { visible: true }); },
  wait: async script => {
    // Not waitForFunction: it evaluates text inside the page, which the policy forbids.
    for (const until = Date.now() + timeout; !await page.evaluate(script);) {
      if (Date.now() > until) throw new Error('it never came');
      await new Promise(done => setTimeout(done, 50));
    }
  },
  evaluate: script => page.evaluate(script),
  errors: () => errors,
};
for await (const line of createInterface({ input: process.stdin })) {
  const [command, ...rest] = JSON.parse(line);
  let reply;
  try {
    reply = { result: await does[command](...rest) ?? null };
  } catch (error) {
    reply = { failed: `${command} ${rest.join(' ')}: ${error.message}` };
  }
  process.stdout.write(`${JSON.stringify(reply)}\n`);
}
await browser.close();
