// A datasource that hands back what it was given: every option type, what a read asked for, and exceptions of every
// kind.
#include <stdexcept>

#include "headroom/datasource.hpp"

namespace {

using namespace headroom::sdk;

std::string text_of(const Options& options) {
  std::string text;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
  add(options.boolean("flag") ? "true" : "false");
  add(std::to_string(options.i64("count")));
  add(std::to_string(options.f64("rate")));
  add(options.string("word"));
  add(std::to_string(options.bytes("room")));
  add(options.path("place").filename().string());
  for (const bool value : options.list_bool("flags")) add(value ? "t" : "f");
  for (const int64_t value : options.list_i64("counts")) add(std::to_string(value));
  for (const double value : options.list_f64("rates")) add(std::to_string(value));
  for (const std::string& value : options.list_string("words")) add(value);
  for (const auto& value : options.list_path("places")) add(value.filename().string());
  if (options.has("inner")) add("inner:" + std::to_string(options.table("inner").i64("depth")));
  if (options.has("stages")) {
    for (const Options& stage : options.tables("stages"))
      add(stage.string("name") + "=" + std::to_string(stage.i64("size")));
  }
  add(options.has("absent") ? "present" : "absent");
  return text;
}

void misbehave(const std::string& how, const Options& options) {
  if (how == "invalid") invalid("word is wrong: use another");
  if (how == "bad_alloc") throw std::bad_alloc();
  if (how == "runtime_error") throw std::runtime_error("something broke");
  if (how == "int") throw 42;
  if (how == "long") throw Error(HR_IO, std::string(600, 'y'));
  if (how == "utf8") throw Error(HR_IO, std::string(502, 'y') + "\xc3\xa4\xc3\xa4");
  if (how == "unknown_option") options.i64("no_such_key");
  if (how == "wrong_type") options.f64("count");
  if (how == "absent_option") options.i64("absent");
}

class EveryType {
 public:
  static OptionList options() {
    return {opt_bool("flag").def(true).help("h"),
            opt_i64("count").def(7).min(1).max(9).help("h"),
            opt_f64("rate").def(2).min(0).help("h"),
            opt_string("word").def("plain").help("h"),
            opt_bytes("room").def("1 KiB").min("1 B").max("1 GiB").help("h"),
            opt_path("place").def("somewhere").help("h"),
            opt_bools("flags").def("[true, false]").help("h"),
            opt_i64s("counts").def("[1, 2, 3]").help("h"),
            opt_f64s("rates").def("[0.5]").help("h"),
            opt_strings("words").def("[\"a\", \"b\"]").choices({"a", "b", "c"}).help("h"),
            opt_paths("places").def("[]").help("h"),
            opt_table("inner", {opt_i64("depth").def(3).help("h")}).help("h"),
            opt_tables("stages", {opt_string("name").required().help("h"), opt_i64("size").def(1).help("h")}).help("h"),
            opt_i64("absent").help("h")};
  }

  EveryType(const Host& host, const Options& options) : said_(text_of(options)) {
    misbehave(options.string("word"), options);
    host.info("opened");
  }
  std::vector<Field> fields() const {
    Field text{.name = "text", .dtype = u8, .shape = {static_cast<int64_t>(said_.size())}, .channel_axis = 0};
    for (std::size_t i = 0; i < said_.size(); ++i)
      text.channels.push_back(
          {.name = "letter " + std::to_string(i), .unit = i == 0 ? "rad" : "", .mean = 0.5, .std = 2.0});
    return {text};
  }
  std::vector<std::string> splits() const { return {"train", "val"}; }
  uint64_t length(uint32_t split) const { return split == 0 ? 6 : 2; }
  std::vector<Group> groups(uint32_t split) const {
    if (split == 1) return {{"c", 0, 2}};
    return {{"a", 0, 4}, {"b", 4, 2}};
  }
  double cost(uint32_t, uint64_t index) const { return 1.0 + static_cast<double>(index); }
  std::vector<std::string> files() const { return {"one.h5", "two.h5"}; }
  void read(const ReadRequest& request) const {
    if (request.index(0) == 5) throw Error(HR_DATA_CORRUPT, "sample 5 is damaged");
    for (uint64_t i = 0; i < request.count(); ++i) std::ranges::copy(said_, request.slot<uint8_t>(0, i).begin());
  }

 private:
  std::string said_;
};

}  // namespace

HEADROOM_PLUGIN(.id = "every_type", .version = "2.1", .summary = "Says what it was told",
                .interfaces = {datasource<EveryType>()});
