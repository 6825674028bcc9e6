// What python3 is given to read a parquet file with. It writes lines of JSON to stdout, and behind each but the first
// the values that they announce, little-endian and dense, column by column:
//   {"rows": 120, "columns": [{"name": "action", "code": 2, "bits": 32, "width": 14, "list": true}, ...]}
//   {"rows": 100} values
// `code` and `bits` are those of DLPack; bits 0: no numbers. What is wrong is the last line on stderr.
#pragma once

namespace headroom {

inline constexpr const char* parquet_script = R"python(
import sys
sys.path = [folder for folder in sys.path if folder]  # a json.py of the folder it runs in is not meant
import json
try:
    import pyarrow as pa, pyarrow.compute as pc, pyarrow.parquet as pq
except ImportError:
    sys.exit(17)

def kind(t):
    if pa.types.is_boolean(t): return 6, 8
    if pa.types.is_signed_integer(t): return 0, t.bit_width
    if pa.types.is_unsigned_integer(t): return 1, t.bit_width
    if t in (pa.float32(), pa.float64()): return 2, t.bit_width
    return 0, 0

def is_list(t):
    return pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_fixed_size_list(t)

def describe(file, field):
    width, values, outermost = 1, field.type, True
    while is_list(values):
        if pa.types.is_fixed_size_list(values):
            width *= values.list_size
        elif outermost:
            width = first_length(file, field.name)
        else:
            width = 0
        values, outermost = values.value_type, False
    code, bits = kind(values) if width > 0 else (0, 0)
    return {"name": field.name, "code": code, "bits": bits, "width": width, "list": is_list(field.type)}

def first_length(file, name):
    for batch in file.iter_batches(batch_size=1, columns=[name]):
        return len(batch.column(batch.schema.get_field_index(name))[0].as_py() or [])
    return 0

def dense(column, said):
    while is_list(column.type):
        if column.null_count: sys.exit("column %r has rows without a list" % said["name"])
        lengths = pc.list_value_length(column)
        if len(column) and pc.min(lengths).as_py() != pc.max(lengths).as_py():
            sys.exit("column %r has lists of different lengths" % said["name"])
        column = column.flatten()
    if column.null_count:
        if said["code"] != 2:
            sys.exit("column %r has nulls, which only floats can hold; fill them, or leave it out" % said["name"])
        column = pc.fill_null(column, float("nan"))
    if pa.types.is_boolean(column.type): column = column.cast(pa.uint8())
    size = said["bits"] // 8
    return memoryview(column.buffers()[1])[column.offset * size:(column.offset + len(column)) * size], len(column)

path, batch_rows = sys.argv[1], int(sys.argv[2])
ranges = [part.split("-") for part in sys.argv[3].split(",") if part]
wanted = [c for first, last in ranges for c in range(int(first), int(last) + 1)]
try:
    file = pq.ParquetFile(path)
    schema, out = file.schema_arrow, sys.stdout.buffer
    columns = [describe(file, field) for field in schema]
    out.write((json.dumps({"rows": file.metadata.num_rows, "columns": columns}) + "\n").encode())
    out.flush()
    if wanted:
        for batch in file.iter_batches(batch_size=batch_rows, columns=[schema[c].name for c in wanted]):
            out.write(b'{"rows": %d}\n' % len(batch))
            for c in wanted:
                values, count = dense(batch.column(batch.schema.get_field_index(schema[c].name)), columns[c])
                if count != len(batch) * columns[c]["width"]:
                    sys.exit("column %r has lists of different lengths" % columns[c]["name"])
                out.write(values)
        out.flush()
except (OSError, pa.ArrowException) as problem:
    sys.exit(" ".join(str(problem).split()))
)python";

}  // namespace headroom
