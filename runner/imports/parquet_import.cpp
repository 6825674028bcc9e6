#include "imports/parquet_import.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "arrays/open_files.hpp"
#include "error.hpp"
#include "imports/parquet_script.hpp"
#include "memory/tool_output.hpp"

namespace headroom {

namespace {

using Json = nlohmann::json;

constexpr uint64_t most_values_at_once = 512 << 10;  // 4 MiB, where they have 64 bits
constexpr int no_pyarrow = 17;                       // exit code of the script
constexpr const char* absent =
    "parquet files are read by python3 with pyarrow, which is not there: install it (python3 -m venv .venv && "
    ".venv/bin/pip install pyarrow && . .venv/bin/activate), and run the same command again";

struct ParquetTable {
  std::vector<TableColumn> columns;
  uint64_t rows = 0;
};

class PyarrowProcess {
 public:
  // `columns`: ranges_of() those whose values are wanted; "" for the description alone.
  PyarrowProcess(const std::filesystem::path& from, uint64_t batch_rows, const std::string& columns)
      : tool_({"python3", "-c", parquet_script, from.string(), std::to_string(batch_rows), columns}, "data convert",
              absent) {}

  // The next message. Throws what the script complained of where there is none.
  Json next() {
    const auto line = tool_.line();
    Json message = line ? Json::parse(*line, nullptr, /*allow_exceptions=*/false) : Json();
    if (message.is_object()) return message;
    const int code = tool_.wait();
    if (code == no_pyarrow) throw Error(Exit::bad_input, "data convert", absent);
    throw sdk::Error(HR_DATA_CORRUPT, "pyarrow cannot read it: " + tool_.complaint());
  }
  void fill(std::vector<std::byte>& bytes) {
    if (tool_.read(bytes) == bytes.size()) return;
    tool_.wait();
    throw sdk::Error(HR_DATA_CORRUPT, "pyarrow cannot read it: " + tool_.complaint());
  }

 private:
  ToolOutput tool_;
};

ParquetTable description_from(const Json& message) {
  ParquetTable table{{}, message.at("rows").get<uint64_t>()};
  for (const Json& column : message.at("columns")) {
    const DLDataType dtype{column.at("code").get<uint8_t>(), column.at("bits").get<uint8_t>(), 1};
    table.columns.push_back({column.at("name").get<std::string>(), dtype, column.at("width").get<uint64_t>(),
                             column.at("list").get<bool>()});
  }
  return table;
}

// pyarrow gives columns by name.
void require_own_names(const std::vector<TableColumn>& columns, const std::vector<size_t>& used) {
  std::map<std::string_view, size_t> count;
  for (const TableColumn& column : columns) ++count[column.name];
  for (const size_t c : used) {
    if (count[columns[c].name] == 1) continue;
    throw sdk::Error(HR_UNSUPPORTED, "it has more than one column " + in_quotes(columns[c].name) + "; rename them");
  }
}

// "0-4,7-7": each of thousands of numbers would be too long for an argument.
std::string ranges_of(const std::vector<size_t>& used) {
  std::string text;
  for (size_t i = 0; i < used.size(); ++i) {
    const size_t first = used[i];
    while (i + 1 < used.size() && used[i + 1] == used[i] + 1) ++i;
    text += (text.empty() ? "" : ",") + std::to_string(first) + "-" + std::to_string(used[i]);
  }
  return text;
}

}  // namespace

Imported import_parquet(const std::filesystem::path& from, const ImportOptions& options, ImportTarget& target,
                        const ImportProgress& progress) {
  const ParquetTable described = description_from(PyarrowProcess(from, 1, "").next());
  if (described.rows == 0) throw sdk::Error(HR_DATA_CORRUPT, "it has no rows");
  TableImport table(described.columns, options.columns, described.rows, target);
  const std::vector<size_t> used = table.used_columns();
  require_own_names(described.columns, used);
  uint64_t values_in_row = 0;
  for (const size_t c : used) values_in_row += described.columns[c].width;
  PyarrowProcess python(from, std::max<uint64_t>(1, most_values_at_once / values_in_row), ranges_of(used));
  python.next();  // the same description
  std::vector<std::vector<std::byte>> values(described.columns.size());
  while (table.rows() < described.rows) {
    const auto rows = python.next().at("rows").get<uint64_t>();
    std::vector<std::span<const std::byte>> blocks(values.size());
    for (const size_t c : used) {
      values[c].resize(rows * described.columns[c].width * (described.columns[c].dtype.bits / 8u));
      python.fill(values[c]);
      blocks[c] = values[c];
    }
    table.append(blocks, rows);
    progress(table.rows(), described.rows);
  }
  return {target.datasets(), table.left_out()};
}

}  // namespace headroom
