// Azurite's blob service, in memory. Usage: node main.js PORT
process.argv = [
  ...process.argv.slice(0, 2),
  "--silent", "--inMemoryPersistence", "--skipApiVersionCheck", "--blobHost", "127.0.0.1", "--blobPort", process.argv[2],
];
require("azurite/dist/src/blob/main.js");
