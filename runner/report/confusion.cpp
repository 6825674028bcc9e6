#include "report/confusion.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "record/numbers.hpp"
#include "report/heat_map.hpp"
#include "report/page.hpp"
#include "report/plot_frame.hpp"

namespace headroom {

namespace {

using Json = nlohmann::json;

constexpr size_t most_classes_in_words = 20, most_classes_drawn = 256;

// Of one output and split, as the summary has it.
struct Confused {
  std::string title;  // "val/scores"
  std::vector<std::string> names;
  std::vector<std::vector<uint64_t>> matrix;  // empty: there were too many classes
  std::vector<uint64_t> support;
  const Json* json;

  size_t classes() const { return support.size(); }
};

bool is_list_of(const Json& json, const char* key, size_t count, bool (Json::*is)() const noexcept) {
  const auto found = json.find(key);
  return found != json.end() && found->is_array() && found->size() == count &&
         std::ranges::all_of(*found, [&](const Json& value) { return (value.*is)(); });
}

std::vector<std::vector<uint64_t>> matrix_of(const Json& json, size_t classes) {
  std::vector<std::vector<uint64_t>> matrix;
  const auto rows = json.find("matrix");
  if (rows == json.end() || !rows->is_array() || rows->size() != classes || classes > most_classes_drawn) return {};
  for (const Json& row : *rows) {
    if (!row.is_array() || row.size() != classes ||
        !std::ranges::all_of(row, [](const Json& value) { return value.is_number_unsigned(); }))
      return {};
    matrix.push_back(row.get<std::vector<uint64_t>>());
  }
  return matrix;
}

// nullopt where it is no such thing.
std::optional<Confused> read_confused(const std::string& title, const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const Json support = json.value("support", Json());
  if (!support.is_array() || support.empty() || !is_list_of(json, "support", support.size(), &Json::is_number_unsigned))
    return std::nullopt;
  Confused confused{title, {}, matrix_of(json, support.size()), support.get<std::vector<uint64_t>>(), &json};
  const bool is_named = is_list_of(json, "names", support.size(), &Json::is_string);
  for (size_t c = 0; c < support.size(); ++c)
    confused.names.push_back(is_named ? json.at("names").at(c).get<std::string>() : std::to_string(c));
  return confused;
}

std::vector<Confused> read_all(const Json& classes) {
  std::vector<Confused> all;
  if (!classes.is_object()) return all;
  // Validation before training.
  for (const bool of_training : {false, true}) {
    for (const auto& [title, json] : classes.items()) {
      if (title.starts_with("train/") != of_training) continue;
      if (auto confused = read_confused(title, json)) all.push_back(std::move(*confused));
    }
  }
  return all;
}

struct Mistaken {
  size_t row, column;
  uint64_t count;
  double share;
};

std::vector<Mistaken> mistaken(const Confused& confused) {
  std::vector<Mistaken> found;
  const auto list = confused.json->find("confused");
  if (list == confused.json->end() || !list->is_array()) return found;
  for (const Json& pair : *list) {
    if (!pair.is_object()) continue;
    const Json row = pair.value("true", Json()), column = pair.value("predicted", Json()),
               count = pair.value("count", Json());
    if (!row.is_number_unsigned() || !column.is_number_unsigned() || !count.is_number_unsigned()) continue;
    const Mistaken one{row.get<size_t>(), column.get<size_t>(), count.get<uint64_t>(), 0.0};
    if (one.row >= confused.classes() || one.column >= confused.classes()) continue;
    found.push_back(one);
    if (confused.support[one.row] > 0)
      found.back().share = static_cast<double>(one.count) / static_cast<double>(confused.support[one.row]);
  }
  return found;
}

std::string share_text(double share) { return short_number(100 * share, 3) + " %"; }

double share_of_row(const Confused& confused, size_t row, size_t column) {
  const uint64_t all = confused.support[row];
  return all == 0 ? 0.0 : static_cast<double>(confused.matrix[row][column]) / static_cast<double>(all);
}

std::string confusion_caption(const Confused& confused) {
  return escape_html(confused.title) +
         "<small>down: the true class, across: the class predicted; colours are shares of "
         "a row</small>";
}

std::string matrix_in_words(const Confused& confused) {
  std::string html = "<figure><div class=\"wide\"><table class=\"heat\"><caption>" + confusion_caption(confused) +
                     "</caption><thead><tr><td></td>";
  for (const std::string& name : confused.names) html += element("th", "scope=\"col\"", escape_html(name));
  html += "</tr></thead><tbody>\n";
  for (size_t row = 0; row < confused.classes(); ++row) {
    html += "<tr>" + element("th", "scope=\"row\"", escape_html(confused.names[row]));
    for (size_t column = 0; column < confused.classes(); ++column) {
      const double share = share_of_row(confused, row, column);
      html += element("td", "style=\"" + heat_style(share) + "\"",
                      std::to_string(confused.matrix[row][column]) + "<br><small style=\"color:inherit\">" +
                          share_text(share) + "</small>");
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div></figure>\n";
}

std::string svg_number(double value) { return short_number(value, 6); }

// A square a cell; those without a count are the ground. Names stand along both edges.
std::string matrix_in_squares(const Confused& confused) {
  const size_t classes = confused.classes();
  const double side = classes <= 50    ? 14
                      : classes <= 120 ? 9
                                       : 6,
               edge = 120, size = side * static_cast<double>(classes);
  const std::string whole = svg_number(edge + size), font = svg_number(std::min(side, 11.0));
  std::string svg = "<svg role=\"img\" aria-label=\"confusion matrix\" width=\"" + whole + "\" height=\"" + whole +
                    "\" viewBox=\"0 0 " + whole + " " + whole + "\" font-size=\"" + font +
                    "\" fill=\"currentColor\">\n";
  svg += "<rect x=\"" + svg_number(edge) + "\" y=\"" + svg_number(edge) + "\" width=\"" + svg_number(size) +
         "\" height=\"" + svg_number(size) + "\" fill=\"" + heat_ground(0.0) + "\"/>\n";
  for (size_t c = 0; c < classes; ++c) {
    const std::string middle = svg_number(edge + side * (static_cast<double>(c) + 0.8)),
                      name = escape_html(confused.names[c]), before = svg_number(edge - 4);
    svg += "<text x=\"" + before + "\" y=\"" + middle + "\" text-anchor=\"end\">" + name + "</text>";
    svg += "<text transform=\"translate(" + middle + " " + before + ") rotate(-90)\">" + name + "</text>\n";
  }
  for (size_t row = 0; row < classes; ++row) {
    for (size_t column = 0; column < classes; ++column) {
      if (confused.matrix[row][column] == 0) continue;
      const double share = share_of_row(confused, row, column);
      svg += "<rect x=\"" + svg_number(edge + side * static_cast<double>(column)) + "\" y=\"" +
             svg_number(edge + side * static_cast<double>(row)) + "\" width=\"" + svg_number(side) + "\" height=\"" +
             svg_number(side) + "\" fill=\"" + heat_ground(share) + "\"><title>" +
             escape_html("true " + confused.names[row] + ", predicted " + confused.names[column] + ": " +
                         std::to_string(confused.matrix[row][column]) + ", " + share_text(share)) +
             "</title></rect>\n";
    }
  }
  return "<figure><p>" + confusion_caption(confused) + "</p><div class=\"wide\">\n" + svg + "</svg></div></figure>\n";
}

std::string mistakes_table(const Confused& confused) {
  std::vector<std::vector<std::string>> rows;
  for (const Mistaken& one : mistaken(confused)) {
    rows.push_back(
        {confused.names[one.row], confused.names[one.column], std::to_string(one.count), share_text(one.share)});
  }
  return rows.empty() ? "" : table_html({"true", "predicted", "count", "of the true class"}, rows);
}

std::string classes_table(const Confused& confused) {
  std::vector<std::vector<std::string>> rows;
  for (size_t c = 0; c < confused.classes(); ++c) {
    std::vector<std::string> row = {confused.names[c], std::to_string(confused.support[c])};
    for (const char* key : {"precision", "recall", "f1"}) {
      const Json list = confused.json->value(key, Json());
      const Json value = list.is_array() && c < list.size() ? list[c] : Json();
      row.push_back(value.is_number() ? short_number(value.get<double>()) : "-");
    }
    rows.push_back(std::move(row));
  }
  return table_html({"class", "elements", "precision", "recall", "F1"}, rows);
}

}  // namespace

std::string confusion_html(const Json& classes) {
  std::string html;
  for (const Confused& confused : read_all(classes)) {
    std::string shown;
    if (!confused.matrix.empty())
      shown += confused.classes() <= most_classes_in_words ? matrix_in_words(confused) : matrix_in_squares(confused);
    if (const std::string mistakes = mistakes_table(confused); !mistakes.empty())
      shown += folded(confused.title + ": most frequent mistakes", mistakes);
    shown += folded(confused.title + ": precision, recall and F1 by class", classes_table(confused));
    html += confused.title.starts_with("train/") ? folded(confused.title, shown) : shown;
  }
  return html;
}

std::vector<std::string> confused_lines(const Json& classes, size_t most) {
  std::vector<std::string> lines;
  const std::vector<Confused> all = read_all(classes);
  for (const Confused& confused : all) {
    // Of training only where nothing else was measured: read_all() has it last.
    if (confused.title.starts_with("train/") && !all.front().title.starts_with("train/")) break;
    const std::vector<Mistaken> found = mistaken(confused);
    for (size_t i = 0; i < std::min(found.size(), most); ++i) {
      const std::string &row = confused.names[found[i].row], &column = confused.names[found[i].column];
      lines.push_back(confused.title + ": '" + row + "' taken for '" + column + "' " + std::to_string(found[i].count) +
                      (found[i].count == 1 ? " time, " : " times, ") + share_text(found[i].share) + " of '" + row +
                      "'");
    }
  }
  return lines;
}

}  // namespace headroom
