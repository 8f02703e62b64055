// A browser for tests in other languages: a command a line on stdin, [what, argument...] as JSON, an answer a line on stdout: {} or
// {"error": "..."}. tests/page/browser.py speaks it.
import {createInterface} from 'node:readline';
import {findings, launch, open, picture, problems} from './browser.mjs';

const browser = await launch();
let page;
const COMMANDS = {
  open: async address => { page = await open(browser, address); },
  go: hash => page.evaluate(to => { location.hash = to; }, hash),
  see: text => page.getByText(text).first().waitFor(),
  gone: text => page.getByText(text).first().waitFor({state: 'detached'}),
  at: address => {
    const {pathname, search} = new URL(page.url());
    if (pathname + search !== address) throw new Error(`it is at ${page.url()}`);
  },
  press: key => page.keyboard.press(key),
  click: name => page.getByRole('button', {name, exact: true}).click(),
  // The button that has the focus.
  focused: async name => {
    await page.waitForFunction(text => document.activeElement?.textContent === text, name);
  },
  // There is no such button.
  no: async name => {
    if (await page.getByRole('button', {name, exact: true}).count() > 0) throw new Error(`there is a button '${name}'`);
  },
  picture: name => picture(page, name),
  faultless: async () => {
    const found = [...await problems(page), ...await findings(page)];
    if (found.length > 0) throw new Error(found.join('\n'));
  },
};

for await (const line of createInterface({input: process.stdin})) {
  const [what, ...rest] = JSON.parse(line);
  const answer = await Promise.resolve().then(() => COMMANDS[what](...rest)).then(() => ({}), error => ({error: error.message}));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
