// Reads what `protoc --descriptor_set_out` writes: messages and enums with their fields, and nothing else of it.
// The numbers are those of google/protobuf/descriptor.proto.

const LABEL_REPEATED = 3;
const TYPES = {
  1: 'double', 2: 'float', 3: 'int64', 4: 'uint64', 5: 'int32', 6: 'fixed64', 7: 'fixed32', 8: 'bool', 9: 'string', 11: 'message',
  12: 'bytes', 13: 'uint32', 14: 'enum', 15: 'sfixed32', 16: 'sfixed64', 17: 'sint32', 18: 'sint64',
};

// The fields of one encoded message, by number; each a list of numbers or of byte arrays.
function fieldsOf(bytes) {
  const fields = new Map();
  let at = 0;
  const varint = () => {
    let value = 0, factor = 1;
    for (;;) {
      const byte = bytes[at++];
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
      factor *= 128;
    }
  };
  while (at < bytes.length) {
    const tag = varint(), number = Math.floor(tag / 8), wire = tag % 8;
    let value;
    if (wire === 0) value = varint();
    else if (wire === 2) {
      const length = varint();
      value = bytes.subarray(at, at + length);
      at += length;
    } else throw new Error(`a descriptor with wire type ${wire}`);
    fields.set(number, [...(fields.get(number) ?? []), value]);
  }
  return fields;
}

const text = bytes => (bytes === undefined ? '' : new TextDecoder().decode(bytes));
const all = (fields, number) => fields.get(number) ?? [];
const one = (fields, number) => all(fields, number)[0];

function readField(bytes) {
  const field = fieldsOf(bytes);
  return {
    name: text(one(field, 1)),
    jsonName: text(one(field, 10)),
    repeated: one(field, 4) === LABEL_REPEATED,
    type: TYPES[one(field, 5)],
    typeName: text(one(field, 6)).replace(/^\./, ''),
    optional: one(field, 17) === 1,
  };
}

function readEnum(bytes, scope, into) {
  const fields = fieldsOf(bytes);
  const name = `${scope}.${text(one(fields, 1))}`;
  into.enums.set(name, all(fields, 2).map(value => text(one(fieldsOf(value), 1))));
}

function readMessage(bytes, scope, into) {
  const fields = fieldsOf(bytes);
  const name = `${scope}.${text(one(fields, 1))}`;
  const options = one(fields, 7);
  const isMap = options !== undefined && one(fieldsOf(options), 7) === 1;
  into.messages.set(name, {isMap, fields: all(fields, 2).map(readField)});
  for (const nested of all(fields, 3)) readMessage(nested, name, into);
  for (const nested of all(fields, 4)) readEnum(nested, name, into);
}

// {messages: name -> {isMap, fields}, enums: name -> values' names}; names with their package.
export function readDescriptorSet(bytes) {
  const into = {messages: new Map(), enums: new Map()};
  for (const file of all(fieldsOf(bytes), 1)) {
    const fields = fieldsOf(file);
    const scope = text(one(fields, 2));
    for (const message of all(fields, 4)) readMessage(message, scope, into);
    for (const each of all(fields, 5)) readEnum(each, scope, into);
  }
  return into;
}
