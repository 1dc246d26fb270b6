// What an iteration costs that does nothing.
export const options = { scenarios: JSON.parse(__ENV.SCENARIOS) };
export default function () {}
