// Builds the script and the style of the pages into a folder, ../assets unless another is named: `node build.js [folder]`.
import { build } from 'esbuild';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import path from 'node:path';

const here = path.dirname(fileURLToPath(import.meta.url));

export async function buildInto(folder) {
  const { version } = JSON.parse(await readFile(path.join(here, 'node_modules/uplot/package.json'), 'utf8'));
  const licence = await readFile(path.join(here, 'node_modules/uplot/LICENSE'), 'utf8');
  const banner = `/* Built from ../web by make report-assets. It contains uPlot ${version}, https://github.com/leeoniya/uPlot\n\n${licence}*/`;
  const common = { bundle: true, minify: true, charset: 'utf8', legalComments: 'none', target: ['es2020'], logLevel: 'warning', absWorkingDir: here };
  await build({ ...common, entryPoints: ['src/page.js'], outfile: path.join(folder, 'page.js'), format: 'iife', banner: { js: banner } });
  await build({ ...common, entryPoints: ['src/page.css'], outfile: path.join(folder, 'page.css') });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await buildInto(path.resolve(process.argv[2] ?? path.join(here, '../assets')));
}
