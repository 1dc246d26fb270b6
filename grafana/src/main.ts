// Writes the dashboards into the folder that is given.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compare } from './compare';
import { run } from './run';

const folder = process.argv[2];
if (!folder) throw new Error('usage: node main.js FOLDER');
for (const [name, dashboard] of Object.entries({ run, compare })) {
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(dashboard, null, 2)}\n`);
}
