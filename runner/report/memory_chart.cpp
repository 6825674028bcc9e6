#include "report/memory_chart.hpp"

#include <array>
#include <numeric>

#include "report/json_text.hpp"
#include "report/page.hpp"
#include "report/plot_frame.hpp"

namespace headroom {

namespace {

using Json = nlohmann::json;

// Layers with a colour of their own: fewer than the palette has, so that no colour comes twice.
constexpr size_t kept_apart = 7;

// One area of the chart. `owners` are places in MemoryCurve::owners.
struct Layer {
  std::string name, classes;
  std::vector<size_t> owners;
  double peak_bytes = 0;
};

double bytes_of(const HeldMoment& moment, const Layer& layer) {
  double sum = 0;
  for (const size_t owner : layer.owners) {
    // Moments before an owner first came have no entry for it.
    if (owner < moment.owner_bytes.size()) sum += moment.owner_bytes[owner];
  }
  return sum;
}

// The largest owners one by one, the others together; memory without an owner is on top, in grey.
std::vector<Layer> layers_of(const MemoryCurve& memory) {
  std::vector<Layer> layers, greys;
  for (size_t owner = 0; owner < memory.owners.size(); ++owner) {
    Layer layer{memory.owners[owner], "", {owner}};
    for (const auto& [x, moment] : memory.moments.entries())
      layer.peak_bytes = std::max(layer.peak_bytes, bytes_of(moment, layer));
    if (layer.peak_bytes == 0) continue;
    const bool nobodys = layer.name == "slack" || layer.name == "other";
    (nobodys ? greys : layers).push_back(std::move(layer));
  }
  std::stable_sort(layers.begin(), layers.end(),
                   [](const Layer& a, const Layer& b) { return a.peak_bytes > b.peak_bytes; });
  if (layers.size() > kept_apart) {
    Layer rest{"smaller owners", "", {}};
    for (size_t i = kept_apart - 1; i < layers.size(); ++i)
      rest.owners.insert(rest.owners.end(), layers[i].owners.begin(), layers[i].owners.end());
    layers.resize(kept_apart - 1);
    layers.push_back(std::move(rest));
  }
  for (size_t i = 0; i < layers.size(); ++i) layers[i].classes = colour_class(i);
  for (Layer& grey : greys) {
    grey.classes = grey.name == "slack" ? "slack" : "other";
    layers.push_back(std::move(grey));
  }
  return layers;
}

void draw_layers(PlotFrame& frame, const MemoryCurve& memory, const std::vector<Layer>& layers) {
  const auto& moments = memory.moments.entries();
  // The roof of one layer is the floor of the next.
  std::vector<double> x, floor(moments.size(), 0.0), roof(moments.size(), 0.0);
  for (const auto& moment : moments) x.push_back(moment.x);
  for (const Layer& layer : layers) {
    for (size_t i = 0; i < moments.size(); ++i) roof[i] = floor[i] + bytes_of(moments[i].cell, layer);
    frame.area(layer.classes, layer.name, x, floor, roof);
    floor = roof;
  }
}

struct LaneName {
  const char *kind, *name;
};
// Kinds of events in events.jsonl, in the order in which their lanes stand under the plot.
constexpr std::array<LaneName, 6> lanes = {{{"gc_point", "gc points"},
                                            {"out_of_memory", "out of memory, repeated or halved"},
                                            {"pressure", "pressure ladder"},
                                            {"resume", "resumed"},
                                            {"nonfinite", "loss not finite"},
                                            {"checkpoint", "checkpoints"}}};

// A row of ticks under the plot, on its time axis.
std::string lane(const LaneName& name, const EventKind& event, const PlotFrame& frame) {
  std::string ticks;
  // A lane is as wide as the plot, so that ticks stand below the memory of their time.
  for (const auto& [x, cell] : event.at.entries()) ticks += "M" + std::to_string(frame.column(x)) + " 0v100";
  const std::string title =
      std::string(name.name) + ": " + amount_text(static_cast<double>(event.count), Quantity::count);
  return "<div class=\"lane\"><small>" + escape_html(title) +
         "</small><svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 10000 100\" preserveAspectRatio=\"none\" "
         "role=\"img\" aria-label=\"" +
         escape_html(title) + "\"><path class=\"tick " + name.kind + "\" d=\"" + ticks + "\"/></svg></div>\n";
}

std::string event_rows(const LaneName& name, const EventKind& event) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const Json& line) {
    rows.push_back({text_of_json("time", line.value("time", Json())), event_text(line)});
  };
  for (const Json& line : event.first) add(line);
  // A reading keeps the first and the last events of a kind; `count` is of all.
  const auto shown = static_cast<int64_t>(event.first.size() + event.last.size());
  if (event.count > shown) rows.push_back({"...", std::to_string(event.count - shown) + " more"});
  for (const Json& line : event.last) add(line);
  return folded(std::string(name.name) + " (" + std::to_string(event.count) + ")", table_html({"time", "what"}, rows));
}

std::string below(const RunReading& run, const PlotFrame& frame) {
  std::string ticks, rows;
  for (const LaneName& name : lanes) {
    for (const EventKind& event : run.events) {
      if (event.kind != name.kind) continue;
      ticks += lane(name, event, frame);
      rows += event_rows(name, event);
    }
  }
  return ticks + rows;
}

std::string owners_table(const MemoryCurve& memory) {
  const auto& moments = memory.moments.entries();
  // Peaks of owners come at different times and do not add up; the figures of this one moment do.
  const auto most = std::max_element(moments.begin(), moments.end(), [](const auto& a, const auto& b) {
    return a.cell.held_bytes < b.cell.held_bytes;
  });
  std::vector<std::vector<std::string>> rows;
  for (size_t owner = 0; owner < memory.owners.size(); ++owner) {
    const Layer layer{"", "", {owner}};
    double peak = 0;
    for (const auto& moment : moments) peak = std::max(peak, bytes_of(moment.cell, layer));
    rows.push_back({memory.owners[owner], amount_text(peak, Quantity::bytes),
                    amount_text(bytes_of(most->cell, layer), Quantity::bytes),
                    amount_text(bytes_of(moments.back().cell, layer), Quantity::bytes)});
  }
  rows.push_back({"all together", amount_text(most->cell.held_bytes, Quantity::bytes),
                  amount_text(most->cell.held_bytes, Quantity::bytes),
                  amount_text(moments.back().cell.held_bytes, Quantity::bytes)});
  return folded("numbers", table_html({"owner", "highest seen", "when most was held", "at the end"}, rows));
}

}  // namespace

std::string event_text(const Json& event) {
  std::string text;
  for (const auto& [key, value] : event.items()) {
    if (key == "time" || key == "kind") continue;
    text += (text.empty() ? "" : ", ") + words_of_key(key) + " " + text_of_json(key, value);
  }
  return text;
}

std::string memory_chart(const RunReading& run) {
  const auto& moments = run.memory.moments.entries();
  if (moments.empty()) return "";
  double highest = 0;
  for (const auto& moment : moments) highest = std::max(highest, moment.cell.held_bytes);
  const Json memory = run.summary.is_object() ? run.summary.value("memory", Json::object()) : Json::object();
  const auto amount = [&](const char* key) {
    return memory.is_object() && memory.contains(key) && memory[key].is_number() ? memory[key].get<double>() : 0.0;
  };
  const double predicted = amount("predicted_peak_bytes"), measured = amount("measured_peak_bytes"),
               limit = static_cast<double>(run.limit_bytes);
  // Both are drawn as lines, so they have to lie on the axis.
  highest = std::max({highest, predicted, measured});
  // A limit far above the curve would press it flat: the legend alone names it then.
  const bool shows_limit = limit > 0 && limit <= 3 * highest;
  // A run with one record has no span, and an axis needs one.
  const double end = std::max(moments.back().x, 1e-3);
  PlotFrame frame("Memory by owner",
                  "Memory held over " + amount_text(end, Quantity::seconds) + ", at most " +
                      amount_text(highest, Quantity::bytes) +
                      (limit > 0 ? " of " + amount_text(limit, Quantity::bytes) : ""),
                  Scale::exact(0, end, Quantity::seconds, 5),
                  Scale::rounded(0, shows_limit ? std::max(limit, highest) : highest, Quantity::bytes));
  frame.tall();
  frame.note("over running time; the last minutes four times a second, before that every memory.log_every steps");
  const std::vector<Layer> layers = layers_of(run.memory);
  draw_layers(frame, run.memory, layers);
  for (const Layer& layer : layers) frame.legend("box " + layer.classes, layer.name);
  const auto level = [&](double bytes, const char* classes, const std::string& name) {
    if (bytes <= 0) return;
    const bool shown = std::string(classes) != "limit" || shows_limit;
    if (shown) frame.horizontal(bytes, classes);
    frame.legend(classes, name + " " + amount_text(bytes, Quantity::bytes) + (shown ? "" : ", above this plot"));
  };
  level(limit, "limit", "limit");
  level(predicted, "predicted", "predicted peak");
  level(measured, "measured", "measured peak");
  frame.below(below(run, frame) + owners_table(run.memory));
  return frame.html();
}

}  // namespace headroom
