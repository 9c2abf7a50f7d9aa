// The security settings of a listener, in the syntax of each client library. Empty for a listener without TLS and SASL.

const PREFERRED = ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"];
const USER = "USER";
const PASSWORD = "PASSWORD";
const CA = "ca.pem";

/** { protocol, usesTls, usesSasl, mechanism, hasPassword } of /v1/broker. */
export function securityOf({ security_protocol: protocol, sasl_mechanisms: mechanisms }) {
  const known = PREFERRED.find((one) => mechanisms.includes(one));
  return {
    protocol,
    usesTls: protocol.endsWith("SSL"),
    usesSasl: protocol.startsWith("SASL"),
    mechanism: known ?? mechanisms[0],
    hasPassword: known !== undefined,
  };
}

export const isSecured = ({ protocol }) => protocol !== "PLAINTEXT";

/** [[name, value], …] with the names of librdkafka. */
export function librdkafka({ protocol, usesTls, usesSasl, mechanism, hasPassword }) {
  if (protocol === "PLAINTEXT") return [];
  const settings = [["security.protocol", protocol]];
  if (usesTls) settings.push(["ssl.ca.location", CA]);
  if (usesSasl) settings.push(["sasl.mechanism", mechanism]);
  if (hasPassword) settings.push(["sasl.username", USER], ["sasl.password", PASSWORD]);
  return settings;
}

/** A dictionary `security` before the program, and how to add it to others. */
export function pythonDict(security) {
  const settings = librdkafka(security).map(([name, value]) => `    "${name}": "${value}",\n`);
  if (!settings.length) return { before: "", more: "" };
  return { before: `security = {\n${settings.join("")}}\n`, more: ", **security" };
}

/** The same for the keyword arguments of aiokafka and kafka-python; `ca` is the argument for the CA. */
export function pythonArguments(security, ca) {
  if (!isSecured(security)) return { before: "", more: "" };
  const settings = [["security_protocol", `"${security.protocol}"`]];
  if (security.usesTls) settings.push(ca);
  if (security.usesSasl) settings.push(["sasl_mechanism", `"${security.mechanism}"`]);
  if (security.hasPassword) settings.push(["sasl_plain_username", `"${USER}"`], ["sasl_plain_password", `"${PASSWORD}"`]);
  const lines = settings.map(([name, value]) => `    "${name}": ${value},\n`);
  return { before: `security = {\n${lines.join("")}}\n`, more: ", **security" };
}

export const SSL_CAFILE = ["ssl_cafile", `"${CA}"`];
export const SSL_CONTEXT = ["ssl_context", `create_ssl_context(cafile="${CA}")`];

/** Arguments of ottla.client.Security; "" for none. */
export function ottlaSecurity(security) {
  const given = [];
  if (security.usesTls) given.push("tls=True", `ca_file="${CA}"`);
  if (security.hasPassword) given.push(`mechanism="${security.mechanism}"`, `username="${USER}"`, `password="${PASSWORD}"`);
  return given.join(", ");
}

/** Further pairs of a Map.of(…) in Java. */
export function javaSettings(security) {
  if (!isSecured(security)) return "";
  const settings = [["security.protocol", security.protocol]];
  if (security.usesTls) settings.push(["ssl.truststore.type", "PEM"], ["ssl.truststore.location", CA]);
  if (security.usesSasl) settings.push(["sasl.mechanism", security.mechanism]);
  if (security.hasPassword) settings.push(["sasl.jaas.config", jaas(security.mechanism)]);
  return settings.map(([name, value]) => `,\n                "${name}", ${JSON.stringify(value)}`).join("");
}

function jaas(mechanism) {
  const module = mechanism === "PLAIN" ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
  return `org.apache.kafka.common.security.${module} required username='${USER}' password='${PASSWORD}';`;
}

/** Further fields of the options of a Kafka object of kafkajs. */
export function kafkajsSettings(security) {
  const fields = [];
  if (security.usesTls) fields.push(`ssl: { ca: [require("fs").readFileSync("${CA}", "utf-8")] }`);
  if (security.hasPassword) {
    const mechanism = security.mechanism.toLowerCase();
    fields.push(`sasl: { mechanism: "${mechanism}", username: "${USER}", password: "${PASSWORD}" }`);
  }
  return fields.map((one) => `, ${one}`).join("");
}

/** { imports, options } of franz-go. */
export function franzGoSettings({ usesTls, hasPassword, mechanism }) {
  const imports = [];
  const options = [];
  if (usesTls) {
    imports.push('"crypto/tls"');
    options.push("kgo.DialTLSConfig(&tls.Config{}), // RootCAs: the pool with your CA");
  }
  if (hasPassword) {
    const isPlain = mechanism === "PLAIN";
    const kind = mechanism === "SCRAM-SHA-256" ? "AsSha256Mechanism" : isPlain ? "AsMechanism" : "AsSha512Mechanism";
    const name = isPlain ? "plain" : "scram";
    imports.push(`"github.com/twmb/franz-go/pkg/sasl/${name}"`);
    options.push(`kgo.SASL(${name}.Auth{User: "${USER}", Pass: "${PASSWORD}"}.${kind}()),`);
  }
  return {
    standard: imports.filter((one) => !one.includes("/franz-go/")).map((one) => `\n\t${one}`).join(""),
    other: imports.filter((one) => one.includes("/franz-go/")).map((one) => `\n\t${one}`).join(""),
    options: options.map((one) => `\n\t\t${one}`).join(""),
  };
}

/** Lines that change the config of Sarama. */
export function saramaSettings({ usesTls, usesSasl, hasPassword, mechanism }) {
  const lines = [];
  if (usesTls) lines.push("config.Net.TLS.Enable = true // config.Net.TLS.Config: with your CA");
  if (usesSasl) {
    lines.push("config.Net.SASL.Enable = true", `config.Net.SASL.Mechanism = "${mechanism}"`);
    if (hasPassword) lines.push(`config.Net.SASL.User, config.Net.SASL.Password = "${USER}", "${PASSWORD}"`);
    if (mechanism.startsWith("SCRAM")) {
      lines.push("// config.Net.SASL.SCRAMClientGeneratorFunc: as in examples/sasl_scram_client of Sarama");
    }
  }
  return lines.map((one) => `\n\t${one}`).join("");
}

/** Options of kcat. */
export function kcatOptions(security) {
  return librdkafka(security)
    .map(([name, value]) => ` -X ${name}=${value}`)
    .join("");
}

/** Options of curl, of which `who` is the answer of /v1/session. */
export function curlOptions(who, origin) {
  return `${origin.startsWith("https:") ? ` --cacert ${CA}` : ""}${who.has_users ? ` -u '${USER}:${PASSWORD}'` : ""}`;
}
