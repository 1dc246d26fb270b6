// The folder of results under test.
import { readFile } from 'node:fs/promises';
import path from 'node:path';

export const folder = process.env.REPORT;
if (!folder) throw new Error('REPORT names no folder of results: `go test ./report` makes one and runs these tests on it');
export const summary = JSON.parse(await readFile(path.join(folder, 'summary.json'), 'utf8'));
