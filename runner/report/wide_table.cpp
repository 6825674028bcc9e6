#include "report/wide_table.hpp"

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "error.hpp"
#include "record/numbers.hpp"
#include "record/run_folder.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;  // metrics in the order of their appearance

struct Row {
  OrderedJson step, epoch, values = OrderedJson::object();
};

// Scalars of one step come in several events: log lines and the end of an epoch.
void for_each_row(const fs::path& run, const std::function<void(const Row&)>& visit) {
  std::ifstream stream(run / "events.jsonl");
  if (!stream)
    throw Error(Exit::bad_input, "runs", (run / "events.jsonl").string() + " cannot be opened: it is what is exported");
  Row row;
  for (std::string line; std::getline(stream, line);) {
    const OrderedJson event = parse_json<OrderedJson>(line);
    if (!event.is_object() || event.value("kind", OrderedJson()) != "scalars" || !event.contains("values") ||
        !event["values"].is_object())
      continue;
    const OrderedJson step = event.value("step", OrderedJson());
    // Events come in the order of steps: another step ends the row.
    if (!row.values.empty() && step != row.step) {
      visit(row);
      row.values = OrderedJson::object();
    }
    row.step = step;
    row.epoch = event.value("epoch", OrderedJson());
    row.values.update(event["values"]);
  }
  if (!row.values.empty()) visit(row);
}

std::string field_of(const OrderedJson& value) {
  if (value.is_number_float()) return exact_number(value.get<double>());
  return value.is_null() ? "" : csv_field(value.is_string() ? value.get<std::string>() : json_text(value));
}

}  // namespace

void export_csv(const fs::path& run, std::FILE* out) {
  // The file is read twice: the heading needs all names before the first row.
  OrderedJson names = OrderedJson::object();
  for_each_row(run, [&](const Row& row) {
    for (const auto& [name, value] : row.values.items()) names[name] = true;
  });
  std::string line = "step,epoch";
  for (const auto& [name, wanted] : names.items()) line += "," + csv_field(name);
  std::fprintf(out, "%s\n", line.c_str());
  for_each_row(run, [&](const Row& row) {
    line = field_of(row.step) + "," + field_of(row.epoch);
    for (const auto& [name, wanted] : names.items()) line += "," + field_of(row.values.value(name, OrderedJson()));
    std::fprintf(out, "%s\n", line.c_str());
  });
}

void export_jsonl(const fs::path& run, std::FILE* out) {
  for_each_row(run, [&](const Row& row) {
    OrderedJson json = {{"step", row.step}, {"epoch", row.epoch}};
    json.update(row.values);
    std::fprintf(out, "%s\n", json_text(json).c_str());
  });
}

}  // namespace headroom
