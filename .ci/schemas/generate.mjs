// Prints the schemas that libraries generate, one JSON object a line: {from, name, schema, values}. The values are accepted by
// the library itself, and by the schema that it made as ajv reads it: some schemas say less than what they were made of, for
// instance without the flags of a pattern. Each construct is a field of an object, as the arguments of a tool are; what a version lacks is left out.
import { readFileSync } from "node:fs";
import Ajv from "ajv";
import Ajv2019 from "ajv/dist/2019.js";
import Ajv2020 from "ajv/dist/2020.js";

const { dependencies } = JSON.parse(readFileSync(new URL("package.json", import.meta.url)));

function print(from, name, schema, values) {
  const refuses = values.length > 0 && refusal(schema);
  console.log(JSON.stringify({ from, name, schema, values: values.filter((v) => !refuses(v)) }));
}

const options = { strict: false, validateFormats: false, validateSchema: false, addUsedSchema: false, logger: false };
const judges = { "2020-12": new Ajv2020(options), "2019-09": new Ajv2019(options), "": new Ajv(options) };

// refusal returns whether ajv refuses a value. It refuses none if it cannot read the schema.
function refusal(schema) {
  const { $schema = "2020-12", ...rest } = JSON.parse(JSON.stringify(schema));
  const accepts = attempt(() => judges[["2020-12", "2019-09"].find((draft) => $schema.includes(draft)) ?? ""].compile(rest));
  return (v) => accepts !== undefined && !accepts(v);
}

// attempt calls f, and returns nothing if this version has no such thing.
function attempt(f) {
  try {
    return f();
  } catch {
    return undefined;
  }
}

// Constructs of zod, in all of its versions: a type, and values that it takes.
const zod = (z) => {
  let tree, person;
  return {
    string: [() => z.string(), "a"],
    length: [() => z.string().min(1).max(9), "abc"],
    exact: [() => z.string().length(3), "abc"],
    nonempty: [() => z.string().nonempty(), "a"],
    email: [() => z.string().email(), "ada@example.com"],
    url: [() => z.string().url(), "https://example.com/a?b=c"],
    uuid: [() => z.string().uuid(), "123e4567-e89b-42d3-a456-426614174000"],
    guid: [() => z.guid(), "123e4567-e89b-42d3-a456-426614174000"],
    cuid: [() => z.string().cuid(), "cjld2cjxh0000qzrmn831i7rn"],
    cuid2: [() => z.string().cuid2(), "tz4a98xxat96iws9zmbrgj3a"],
    ulid: [() => z.string().ulid(), "01ARZ3NDEKTSV4RRFFQ69G5FAV"],
    xid: [() => z.string().xid(), "9m4e2mr0ui3e8a215n4g"],
    ksuid: [() => z.string().ksuid(), "0ujsswThIGTUYm2K8FjOOfXtY1K"],
    nanoid: [() => z.string().nanoid(), "V1StGXR8_Z5jdHi6B-myT"],
    emoji: [() => z.string().emoji(), "👍"],
    base64: [() => z.string().base64(), "aGVsbG8="],
    base64url: [() => z.string().base64url(), "aGVsbG8"],
    jwt: [() => z.string().jwt(), undefined],
    ip: [() => z.string().ip(), "127.0.0.1", "::1"],
    ipv4: [() => z.ipv4(), "127.0.0.1"],
    ipv6: [() => z.ipv6(), "::1", "2001:db8::8a2e:370:7334"],
    cidr: [() => z.string().cidr(), "10.0.0.0/8"],
    cidrv4: [() => z.cidrv4(), "10.0.0.0/8"],
    cidrv6: [() => z.cidrv6(), "2001:db8::/32"],
    mac: [() => z.mac(), "00:1a:2b:3c:4d:5e"],
    hostname: [() => z.hostname(), "example.com"],
    hex: [() => z.hex(), "c0ffee"],
    hash: [() => z.hash("sha256"), undefined],
    e164: [() => z.e164(), "+441632960001"],
    datetime: [() => z.string().datetime(), "2026-01-02T03:04:05Z"],
    "datetime with offset": [() => z.string().datetime({ offset: true }), "2026-01-02T03:04:05+01:00"],
    "datetime, local": [() => z.string().datetime({ local: true }), "2026-01-02T03:04:05"],
    "datetime, precision": [() => z.string().datetime({ precision: 3 }), "2026-01-02T03:04:05.678Z"],
    date: [() => z.string().date(), "2026-01-02"],
    "leap day": [() => z.string().date(), "2024-02-29"],
    time: [() => z.string().time(), "03:04:05"],
    duration: [() => z.string().duration(), "P3Y6M4DT12H30M5S", "P2W"],
    "iso date": [() => z.iso.date(), "2026-01-02"],
    "iso time": [() => z.iso.time(), "03:04:05"],
    "iso duration": [() => z.iso.duration(), "P3Y6M4DT12H30M5S", "P2W", "PT1H"],
    regex: [() => z.string().regex(/^[a-z]+-\d{2,4}$/), "abc-123"],
    "regex, any case": [() => z.string().regex(/^[a-z]+$/i), "Abc"],
    "regex, lines": [() => z.string().regex(/^a$/m), "a"],
    "regex, dot is all": [() => z.string().regex(/^a.b$/s), "a b"],
    "regex, Unicode": [() => z.string().regex(/^\p{L}+$/u), "äé"],
    "regex, look-ahead": [() => z.string().regex(/^(?!\.)[a-z.]+$/), "a.b"],
    "regex, password": [() => z.string().regex(/^(?=.*[A-Z])(?=.*\d).{8,}$/), "Abcdefg1"],
    "regex, look-behind": [() => z.string().regex(/[a-z](?<!x)$/), "a"],
    "regex, back-reference": [() => z.string().regex(/^(a|b)\1$/), "aa"],
    "regex, name": [() => z.string().regex(/^(?<year>\d{4})$/), "2026"],
    "regex, slash": [() => z.string().regex(/^\/[^/]*$/), "/a"],
    includes: [() => z.string().includes("a.b"), "xa.bx"],
    "starts and ends": [() => z.string().startsWith("a(").endsWith(")"), "a(b)"],
    "two patterns": [() => z.string().regex(/^a/).regex(/b$/), "ab"],
    trim: [() => z.string().trim().toLowerCase(), "a"],
    number: [() => z.number(), 1.5, -2],
    int: [() => z.number().int(), 3],
    bounds: [() => z.number().min(1).max(9), 5],
    exclusive: [() => z.number().gt(0).lt(10), 5],
    positive: [() => z.number().positive(), 1],
    nonnegative: [() => z.number().nonnegative(), 0],
    multiple: [() => z.number().multipleOf(0.5), 1.5],
    step: [() => z.number().step(0.01), 1],
    finite: [() => z.number().finite(), 1],
    safe: [() => z.number().safe(), 1],
    int32: [() => z.int32(), 7],
    uint32: [() => z.uint32(), 7],
    int64: [() => z.int64(), undefined],
    float32: [() => z.float32(), 1.5],
    bigint: [() => z.bigint(), undefined],
    boolean: [() => z.boolean(), true],
    stringbool: [() => z.stringbool(), "yes"],
    coerced: [() => z.coerce.number(), 1],
    "coerced boolean": [() => z.coerce.boolean(), true],
    "coerced date": [() => z.coerce.date(), undefined],
    native: [() => z.date(), undefined],
    null: [() => z.null(), null],
    undefined: [() => z.undefined()],
    void: [() => z.void(), undefined],
    any: [() => z.any(), 1, "a", null],
    unknown: [() => z.unknown(), [1]],
    never: [() => z.never().optional(), undefined],
    nan: [() => z.nan(), undefined],
    symbol: [() => z.symbol(), undefined],
    function: [() => z.function(), undefined],
    promise: [() => z.promise(z.string()), undefined],
    file: [() => z.file(), undefined],
    literal: [() => z.literal("a"), "a"],
    "literal number": [() => z.literal(7), 7],
    "literal boolean": [() => z.literal(true), true],
    "literal null": [() => z.literal(null), null],
    "literals": [() => z.literal(["a", 1, null]), "a", 1, null],
    enum: [() => z.enum(["a", "b"]), "b"],
    "native enum": [() => z.nativeEnum({ A: "a", B: "b" }), "a"],
    "numeric enum": [() => z.nativeEnum({ 0: "A", 1: "B", A: 0, B: 1 }), 1],
    "template literal": [() => z.templateLiteral(["v", z.number(), ".", z.enum(["a", "b"])]), "v1.a"],
    union: [() => z.union([z.string(), z.number()]), "a", 1],
    "union of literals": [() => z.union([z.literal("a"), z.literal("b")]), "a"],
    "union with null": [() => z.union([z.string(), z.null()]), null],
    discriminated: [() => z.discriminatedUnion("t", [z.object({ t: z.literal("a"), n: z.number() }), z.object({ t: z.literal("b"), s: z.string() })]), { t: "b", s: "x" }],
    "discriminated by a name": [() => z.discriminatedUnion([z.object({ t: z.literal("a") })]), undefined],
    intersection: [() => z.intersection(z.object({ a: z.string() }), z.object({ b: z.number() })), { a: "x", b: 1 }],
    and: [() => z.object({ a: z.string() }).and(z.object({ b: z.number() })), { a: "x", b: 1 }],
    array: [() => z.array(z.string()), ["a"]],
    "array, bounds": [() => z.array(z.number()).min(1).max(3), [1]],
    "array, nonempty": [() => z.array(z.number()).nonempty(), [1]],
    "array, length": [() => z.array(z.number()).length(2), [1, 2]],
    "array of arrays": [() => z.array(z.array(z.boolean())), [[true]]],
    tuple: [() => z.tuple([z.string(), z.number()]), ["a", 1]],
    "tuple with rest": [() => z.tuple([z.string()]).rest(z.number()), ["a", 1, 2]],
    "empty tuple": [() => z.tuple([]), []],
    set: [() => z.set(z.string()), undefined],
    map: [() => z.map(z.string(), z.number()), undefined],
    record: [() => z.record(z.string(), z.number()), { a: 1 }],
    "record, short": [() => z.record(z.number()), { a: 1 }],
    "record of enum": [() => z.record(z.enum(["a", "b"]), z.number()), { a: 1, b: 2 }],
    "record of patterns": [() => z.record(z.string().regex(/^x-/), z.string()), { "x-a": "b" }],
    "partial record": [() => z.partialRecord(z.enum(["a", "b"]), z.number()), { a: 1 }],
    object: [() => z.object({ a: z.string(), b: z.number().optional() }), { a: "x" }],
    strict: [() => z.object({ a: z.string() }).strict(), { a: "x" }],
    "strict object": [() => z.strictObject({ a: z.string() }), { a: "x" }],
    "loose object": [() => z.looseObject({ a: z.string() }), { a: "x", more: 1 }],
    passthrough: [() => z.object({ a: z.string() }).passthrough(), { a: "x", more: 1 }],
    catchall: [() => z.object({ a: z.string() }).catchall(z.number()), { a: "x", more: 1 }],
    "empty object": [() => z.object({}), {}],
    partial: [() => z.object({ a: z.string() }).partial(), {}],
    "deep partial": [() => z.object({ a: z.object({ b: z.string() }) }).deepPartial(), { a: {} }],
    pick: [() => z.object({ a: z.string(), b: z.string() }).pick({ a: true }), { a: "x" }],
    extend: [() => z.object({ a: z.string() }).extend({ b: z.number() }), { a: "x", b: 1 }],
    keyof: [() => z.object({ a: z.string(), b: z.string() }).keyof(), "a"],
    "awkward names": [() => z.object({ "a/b~c": z.string(), "$ref": z.string(), "properties": z.string() }), { "a/b~c": "x", $ref: "y", properties: "z" }],
    "name of a prototype": [() => z.object({ constructor: z.string(), toString: z.string() }), { constructor: "x", toString: "y" }],
    optional: [() => z.string().optional(), "a", undefined],
    nullable: [() => z.string().nullable(), "a", null],
    "nullable enum": [() => z.enum(["a", "b"]).nullable(), "a", null],
    "nullable object": [() => z.object({ a: z.string() }).nullable(), null],
    nullish: [() => z.number().nullish(), null, undefined],
    default: [() => z.string().default("a"), "b", undefined],
    "default of an object": [() => z.object({ a: z.number().default(1) }).default({}), {}, undefined],
    prefault: [() => z.string().prefault("a"), "b"],
    catch: [() => z.string().catch("a"), "b"],
    describe: [() => z.string().describe("What to look for"), "a"],
    meta: [() => z.string().meta({ title: "T", examples: ["a"] }), "a"],
    "meta with an id": [() => z.object({ p: (person = z.object({ n: z.string() }).meta({ id: "person" + Math.random() })), q: person }), { p: { n: "a" }, q: { n: "b" } }],
    brand: [() => z.string().brand("b"), "a"],
    readonly: [() => z.array(z.string()).readonly(), ["a"]],
    refine: [() => z.string().refine((s) => s.length > 0), "a"],
    "super refine": [() => z.string().superRefine(() => {}), "a"],
    transform: [() => z.string().transform((s) => s.length), "a"],
    preprocess: [() => z.preprocess((v) => v, z.string()), "a"],
    pipe: [() => z.string().pipe(z.string().min(1)), "a"],
    codec: [() => z.codec(z.string(), z.number(), { decode: Number, encode: String }), undefined],
    json: [() => z.json(), { a: [1, null] }],
    lazy: [() => z.lazy(() => z.string()), "a"],
    recursive: [() => (tree = z.lazy(() => z.object({ v: z.string(), kids: z.array(tree) }))), { v: "a", kids: [{ v: "b", kids: [] }] }],
    "recursive, optional": [() => (tree = z.object({ v: z.string(), next: z.lazy(() => tree).optional() })), { v: "a", next: { v: "b" } }],
    getter: [() => (tree = z.object({ v: z.string(), get kids() { return z.array(tree); } })), { v: "a", kids: [] }],
    "used twice": [() => ((person = z.object({ n: z.string() })), z.object({ from: person, to: person })), { from: { n: "a" }, to: { n: "b" } }],
    xor: [() => z.xor([z.string(), z.number()]), "a"],
    success: [() => z.success(z.string()), undefined],
    instanceof: [() => z.instanceof(Date), undefined],
    custom: [() => z.custom((v) => typeof v === "string"), "a"],
  };
};

// objects calls f for each construct, as a field v of an object, with the objects that the library takes.
function objects(z, f) {
  for (const [name, [make, ...values]] of Object.entries(zod(z))) {
    const type = attempt(() => z.object({ v: make() }));
    if (!type) continue;
    f(name, type, values.map((v) => (v === undefined ? {} : { v })).filter((v) => attempt(() => type.safeParse(v).success)));
  }
}

const { zodToJsonSchema } = await import("zod-to-json-schema");
for (const alias of Object.keys(dependencies)) {
  if (!/^zod(-\d|$)/.test(alias)) continue;
  const version = dependencies[alias].replace("npm:zod@", "");
  const loaded = await import(alias);
  const z = loaded.z ?? loaded;
  if (version.startsWith("3.")) {
    const choices = version.startsWith("3.25") ? ["jsonSchema7", "jsonSchema2019-09", "openApi3", "openAi"].flatMap((target) => ["root", "relative", "none", "seen"].flatMap(($refStrategy) => ["escape", "preserve"].map((patternStrategy) => ({ target, $refStrategy, patternStrategy })))) : [{}];
    for (const choice of choices) {
      objects(z, (name, type, values) => {
        const schema = attempt(() => zodToJsonSchema(type, { strictUnions: true, ...choice }));
        if (schema) print(`zod ${version} ${Object.values(choice).join(" ")}`.trim(), name, schema, values);
      });
    }
    continue;
  }
  for (const target of ["draft-2020-12", "draft-7", "draft-4", "openapi-3.0"]) {
    for (const io of ["input", "output"]) {
      for (const reused of ["inline", "ref"]) {
        objects(z, (name, type, values) => {
          const schema = attempt(() => z.toJSONSchema(type, { target, io, reused, unrepresentable: "any" }));
          if (schema) print(`zod ${version} ${target} ${io} ${reused}`, name, schema, io === "input" ? values : []);
        });
      }
    }
  }
}

// TypeBox, before and after it got a name without a scope.
for (const [name, { Type, Value }] of [
  ["@sinclair/typebox", { ...(await import("@sinclair/typebox")), ...(await import("@sinclair/typebox/value")) }],
  ["typebox", { ...(await import("typebox")), ...(await import("typebox/value")) }],
]) {
  const fields = {
    any: [() => Type.Any(), 1],
    array: [() => Type.Array(Type.Number(), { minItems: 1, uniqueItems: true }), [1]],
    bigint: [() => Type.BigInt()],
    boolean: [() => Type.Boolean(), true],
    composite: [() => Type.Composite([Type.Object({ a: Type.String() }), Type.Object({ b: Type.Number() })]), { a: "x", b: 1 }],
    const: [() => Type.Const({ a: 1 }), { a: 1 }],
    contains: [() => Type.Array(Type.Any(), { contains: Type.Number(), minContains: 1 }), [1]],
    cyclic: [() => Type.Cyclic({ N: Type.Object({ kids: Type.Array(Type.Ref("N")) }) }, "N"), { kids: [] }],
    date: [() => Type.Date()],
    enum: [() => Type.Enum({ A: "a", B: "b" }), "a"],
    exclude: [() => Type.Exclude(Type.Union([Type.Literal("a"), Type.Literal("b")]), Type.Literal("b")), "a"],
    format: [() => Type.String({ format: "email" })],
    function: [() => Type.Function([Type.String()], Type.Number())],
    integer: [() => Type.Integer({ minimum: 0 }), 3],
    intersect: [() => Type.Intersect([Type.Object({ a: Type.String() }), Type.Object({ b: Type.Number() })], { unevaluatedProperties: false }), { a: "x", b: 1 }],
    keyof: [() => Type.KeyOf(Type.Object({ a: Type.String(), b: Type.String() })), "a"],
    literal: [() => Type.Literal("a"), "a"],
    mapped: [() => Type.Partial(Type.Object({ a: Type.String() })), {}],
    module: [() => Type.Module({ N: Type.Object({ kids: Type.Array(Type.Ref("N")) }) }).Import("N"), { kids: [] }],
    never: [() => Type.Optional(Type.Never())],
    not: [() => Type.Not(Type.String()), 1],
    null: [() => Type.Null(), null],
    number: [() => Type.Number({ exclusiveMinimum: 0, multipleOf: 0.5 }), 1.5],
    object: [() => Type.Object({ a: Type.Optional(Type.String()) }, { additionalProperties: false }), {}],
    pattern: [() => Type.RegExp(/^[a-z]+$/), "a"],
    promise: [() => Type.Promise(Type.String())],
    record: [() => Type.Record(Type.String(), Type.Number()), { a: 1 }],
    "record of numbers": [() => Type.Record(Type.Number(), Type.String()), { 1: "a" }],
    "record of a pattern": [() => Type.Record(Type.String({ pattern: "^x-" }), Type.String()), { "x-a": "b" }],
    recursive: [() => Type.Recursive((This) => Type.Object({ id: Type.String(), kids: Type.Array(This) })), { id: "a", kids: [] }],
    string: [() => Type.String({ minLength: 1, pattern: "^a" }), "ab"],
    "template literal": [() => Type.TemplateLiteral("v${0|1}.${string}"), "v1.a"],
    tuple: [() => Type.Tuple([Type.String(), Type.Number()]), ["a", 1]],
    "empty tuple": [() => Type.Tuple([]), []],
    uint8array: [() => Type.Uint8Array()],
    undefined: [() => Type.Optional(Type.Undefined())],
    union: [() => Type.Union([Type.String(), Type.Number(), Type.Null()]), null, 1],
    unknown: [() => Type.Unknown(), 1],
    unsafe: [() => Type.Unsafe({ type: "string", enum: ["a", "b"] }), "a"],
    void: [() => Type.Optional(Type.Void())],
  };
  for (const [field, [make, ...values]] of Object.entries(fields)) {
    const type = attempt(() => Type.Object({ v: make() }));
    if (type) print(`${name} ${dependencies[name]}`, field, type, values.map((v) => ({ v })).filter((v) => attempt(() => Value.Check(type, v))));
  }
}

const v = await import("valibot");
const { toJsonSchema } = await import("@valibot/to-json-schema");
const valibot = {
  any: [() => v.any(), 1],
  array: [() => v.pipe(v.array(v.string()), v.minLength(1), v.maxLength(3)), ["a"]],
  base64: [() => v.pipe(v.string(), v.base64()), "aGVsbG8="],
  bic: [() => v.pipe(v.string(), v.bic()), "DEUTDEFF"],
  boolean: [() => v.boolean(), true],
  cuid2: [() => v.pipe(v.string(), v.cuid2()), "tz4a98xxat96iws9zmbrgj3a"],
  custom: [() => v.custom(() => true)],
  date: [() => v.date()],
  decimal: [() => v.pipe(v.string(), v.decimal()), "1.5"],
  digits: [() => v.pipe(v.string(), v.digits()), "15"],
  email: [() => v.pipe(v.string(), v.email()), "ada@example.com"],
  emoji: [() => v.pipe(v.string(), v.emoji()), "👍"],
  empty: [() => v.pipe(v.string(), v.empty()), ""],
  "exact optional": [() => v.exactOptional(v.string()), "a"],
  hexColor: [() => v.pipe(v.string(), v.hexColor()), "#c0ffee"],
  hexadecimal: [() => v.pipe(v.string(), v.hexadecimal()), "0xc0ffee"],
  integer: [() => v.pipe(v.number(), v.integer(), v.minValue(0)), 1],
  intersect: [() => v.intersect([v.object({ a: v.string() }), v.object({ b: v.number() })]), { a: "x", b: 1 }],
  ipv4: [() => v.pipe(v.string(), v.ipv4()), "127.0.0.1"],
  ipv6: [() => v.pipe(v.string(), v.ipv6()), "::1"],
  isoDate: [() => v.pipe(v.string(), v.isoDate()), "2026-01-02"],
  isoDateTime: [() => v.pipe(v.string(), v.isoDateTime()), "2026-01-02T03:04"],
  isoTime: [() => v.pipe(v.string(), v.isoTime()), "03:04"],
  isoTimestamp: [() => v.pipe(v.string(), v.isoTimestamp()), "2026-01-02T03:04:05.678Z"],
  isoWeek: [() => v.pipe(v.string(), v.isoWeek()), "2026-W05"],
  jwsCompact: [() => v.pipe(v.string(), v.jwsCompact())],
  lazy: [() => { const tree = v.object({ kids: v.array(v.lazy(() => tree)) }); return tree; }, { kids: [] }],
  length: [() => v.pipe(v.string(), v.length(3)), "abc"],
  literal: [() => v.literal("a"), "a"],
  loose: [() => v.looseObject({ a: v.string() }), { a: "x", b: 1 }],
  mac: [() => v.pipe(v.string(), v.mac()), "00:1a:2b:3c:4d:5e"],
  metadata: [() => v.pipe(v.string(), v.title("T"), v.description("D"), v.metadata({ m: 1 })), "a"],
  multipleOf: [() => v.pipe(v.number(), v.multipleOf(5)), 10],
  nanoid: [() => v.pipe(v.string(), v.nanoid()), "V1StGXR8_Z5jdHi6B-myT"],
  nonEmpty: [() => v.pipe(v.string(), v.nonEmpty()), "a"],
  null: [() => v.null(), null],
  nullable: [() => v.nullable(v.string(), null), null],
  nullish: [() => v.nullish(v.string()), null],
  octal: [() => v.pipe(v.string(), v.octal()), "0o17"],
  optional: [() => v.optional(v.string(), "a"), "b"],
  picklist: [() => v.picklist(["a", 1]), "a"],
  record: [() => v.record(v.string(), v.number()), { a: 1 }],
  "record of choices": [() => v.record(v.picklist(["a", "b"]), v.number())],
  regex: [() => v.pipe(v.string(), v.regex(/^(?=.*\d)[a-z\d]+$/u)), "a1"],
  slug: [() => v.pipe(v.string(), v.slug()), "a-b"],
  strict: [() => v.strictObject({ a: v.string() }), { a: "x" }],
  tuple: [() => v.tuple([v.string(), v.number()]), ["a", 1]],
  "tuple with rest": [() => v.tupleWithRest([v.string()], v.number()), ["a", 1]],
  ulid: [() => v.pipe(v.string(), v.ulid()), "01ARZ3NDEKTSV4RRFFQ69G5FAV"],
  undefined: [() => v.optional(v.undefined())],
  union: [() => v.union([v.string(), v.number()]), 1],
  unknown: [() => v.unknown(), 1],
  uuid: [() => v.pipe(v.string(), v.uuid()), "123e4567-e89b-42d3-a456-426614174000"],
  url: [() => v.pipe(v.string(), v.url()), "https://example.com"],
  variant: [() => v.variant("t", [v.object({ t: v.literal("a"), n: v.number() }), v.object({ t: v.literal("b") })]), { t: "b" }],
};
for (const target of ["draft-07", "draft-2020-12", "openapi-3.0"]) {
  for (const [name, [make, ...values]] of Object.entries(valibot)) {
    const type = attempt(() => v.object({ v: make() }));
    const schema = type && attempt(() => toJsonSchema(type, { target, errorMode: "ignore" }));
    if (schema) print(`valibot ${dependencies.valibot} ${target}`, name, schema, values.map((value) => ({ v: value })).filter((value) => v.safeParse(type, value).success));
  }
}

const { scope, type } = await import("arktype");
const arktype = {
  "string": ["a"], "string > 0": ["a"], "string <= 9": ["a"], "2 <= string < 5": ["abc"], "string.email": ["ada@example.com"], "string.url": ["https://example.com"],
  "string.uuid": ["123e4567-e89b-42d3-a456-426614174000"], "string.uuid.v4": ["123e4567-e89b-42d3-a456-426614174000"], "string.ip": ["127.0.0.1", "::1"], "string.ip.v4": ["127.0.0.1"],
  "string.ip.v6": ["::1"], "string.date": ["2026-01-02"], "string.date.iso": ["2026-01-02T03:04:05Z"], "string.date.epoch": ["0"], "string.semver": ["1.2.3-rc.1+x"], "string.base64": ["aGVsbG8="],
  "string.base64.url": ["aGVsbG8"], "string.hex": ["c0ffee"], "string.digits": ["12"], "string.alpha": ["a"], "string.alphanumeric": ["a1"], "string.integer": ["1"], "string.numeric": ["1.5"],
  "string.creditCard": [], "string.json": ["{}"], "string.lower": ["a"], "string.upper": ["A"], "string.capitalize.preformatted": ["A"], "string.trim.preformatted": ["a"], "string.regex": ["a"],
  "/^[a-z]+$/": ["a"], "/^(?!x)[a-z]+$/i": ["a"], "number": [1.5], "number > 0": [1], "-1 <= number < 1": [0], "number % 2": [4], "number.integer": [1], "number.safe": [1],
  "number.epoch": [0], "bigint": [], "boolean": [true], "true": [true], "null": [null], "undefined": [], "unknown": [1], "unknown.any": [1], "never": [], "object": [{}], "object.json": [{ a: 1 }],
  "'a'": ["a"], "'a' | 'b'": ["b"], "string | number": [1], "string | null": [null], "string[]": [["a"]], "string[] > 0": [["a"]], "(string | number)[]": [["a", 1]], "Date": [],
  "string & /^a/": ["ab"], "Record<string, number>": [{ a: 1 }], "symbol": [], "string = 'a'": ["b"],
};
function arktypes(name, make, values) {
  const made = attempt(make);
  for (const target of ["draft-2020-12", "draft-07"]) {
    const schema = made && attempt(() => made.toJsonSchema({ target, fallback: (ctx) => ctx.base }));
    if (schema) print(`arktype ${dependencies.arktype} ${target}`, name, schema, values.map((v) => ({ v })).filter((v) => attempt(() => made.allows(v))));
  }
}
for (const [definition, values] of Object.entries(arktype)) arktypes(definition, () => type({ v: definition }), values);
arktypes("optional", () => type({ "v?": "string" }), ["a"]);
arktypes("tuple", () => type({ v: ["string", "number"] }), [["a", 1]]);
arktypes("tuple, variadic", () => type({ v: ["string", "...", "number[]"] }), [["a", 1, 2]]);
arktypes("undeclared", () => type({ "+": "reject", v: { "a?": "string" } }), [{}]);
arktypes("index", () => type({ v: { "[string]": "number" } }), [{ a: 1 }]);
arktypes("cyclic", () => scope({ node: { "kids?": "node[]" }, root: { v: "node" } }).export().root, [{ kids: [{}] }]);
arktypes("narrow", () => type({ v: type("string").narrow(() => true) }), ["a"]);
arktypes("morph", () => type({ v: type("string").pipe((s) => s.length) }), ["a"]);
arktypes("enumerated", () => type({ v: type.enumerated("a", 1, null) }), ["a", 1, null]);
