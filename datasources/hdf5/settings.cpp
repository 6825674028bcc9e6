#include "settings.hpp"

#include <algorithm>

namespace hdf5_source {

namespace {

constexpr int64_t kMost = int64_t{1} << 24;  // rows of a window, a stride or an offset

std::string text_or_empty(const sdk::Options& options, const char* name) {
  return options.has(name) ? options.string(name) : "";
}

sdk::OptionList field_options() {
  using namespace sdk;
  return {
      opt_string("name").required().help("what models call the field"),
      opt_string("dataset").required().help(
          "its path in the file, below each group where it does not begin with '/'; \"states_*\": each dataset that "
          "matches is of a sequence of its own"),
      opt_string("member").help("of a dataset of records (a compound): the member"),
      opt_string("attribute").help("an attribute of `dataset` (here a group or dataset) instead of its values"),
      opt_string("dtype")
          .def("auto")
          .choices({"auto", "float32", "float64", "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32",
                    "uint64", "int64"})
          .help("what a sample holds; auto: as stored, but float64 and float16 arrive as float32"),
      opt_string("rows")
          .choices({"window", "row", "all"})
          .help("window: rows from the sample's first on; row: that one row; all: the whole dataset, for each sample; "
                "default: window, or row where sample = \"rows\""),
      opt_i64("length").min(1).max(kMost).help("rows of the window, where it is not window_size"),
      opt_i64("offset").def(0).min(-kMost).max(kMost).help("rows from the sample's first row to the field's"),
      opt_string("pad")
          .def("none")
          .choices({"none", "zeros", "edge"})
          .help("beyond the ends of a sequence: zeros, or its first and last row again; none: no such samples"),
      opt_string("pad_mask").help("a further field of this name: bool for each row of the window, true for padding"),
      opt_string("lengths").help(
          "a dataset of integers, one a row: how many values along the sample's first axis count; the others are 0"),
      opt_i64("axis").def(0).min(0).max(7).help("of the dataset, along which rows are counted"),
      opt_i64s("permute").min(0).help("axes of the dataset in the order a sample has them, as torch.permute"),
      opt_strings("axes").help("names of a sample's axes, as [\"time\", \"channel\"]"),
      opt_string("unit").help("\"V\", \"rad\", ..."),
      opt_bool("normalize").def(false).help("standardise it: (x - mean) / std"),
      opt_i64("channel_axis")
          .min(-1)
          .max(7)
          .help("axis of a sample with statistics of their own; -1: one statistic "
                "for all; default: the last axis"),
      opt_strings("channel_names").help("one for each place of channel_axis"),
      opt_strings("channel_units").help("one for each place of channel_axis, where they differ"),
      opt_string("channel_names_attribute")
          .help("an attribute that lists the names: of the dataset, else of the nearest group above it"),
      opt_string("channel_units_attribute").help("the same for the units; a single one is that of all"),
      opt_strings("classes").help("what the values 0, 1, ... mean; strings become these values"),
      opt_string("classes_dataset").help("the same, as a dataset of strings in the files"),
      opt_i64("text_bytes")
          .min(1)
          .max(kMost)
          .help("strings arrive as so many bytes each: their UTF-8 text, cut or followed by zeros"),
  };
}

void read_channels(const sdk::Options& options, const std::string& what, FieldSettings& field) {
  if (options.has("channel_axis")) field.channel_axis = options.i64("channel_axis");
  if (options.has("channel_names")) field.channel_names = options.list_string("channel_names");
  if (options.has("channel_units")) field.channel_units = options.list_string("channel_units");
  field.channel_names_attribute = text_or_empty(options, "channel_names_attribute");
  field.channel_units_attribute = text_or_empty(options, "channel_units_attribute");
  if (!field.channel_names.empty() && !field.channel_names_attribute.empty())
    sdk::invalid(what + "sets channel_names and channel_names_attribute; set one of them");
  if (!field.channel_units.empty() && !field.channel_units_attribute.empty())
    sdk::invalid(what + "sets channel_units and channel_units_attribute; set one of them");
  if (field.has_channels() && field.channel_axis == -1)
    sdk::invalid(what + "names channels, but has channel_axis = -1; name the axis that they lie along");
}

void read_classes(const sdk::Options& options, const std::string& what, FieldSettings& field) {
  if (options.has("classes")) field.classes = options.list_string("classes");
  field.classes_dataset = text_or_empty(options, "classes_dataset");
  if (!field.classes.empty() && !field.classes_dataset.empty())
    sdk::invalid(what + "sets classes and classes_dataset; set one of them");
  if (!field.attribute.empty() && (!field.classes.empty() || !field.classes_dataset.empty()))
    sdk::invalid(what + "names classes and an attribute; classes belong to a dataset");
  if (!options.has("text_bytes")) return;
  field.text_bytes = static_cast<uint64_t>(options.i64("text_bytes"));
  if (!field.classes.empty() || !field.classes_dataset.empty() || !field.attribute.empty() || field.rows != Rows::row) {
    sdk::invalid(
        what + "sets text_bytes, which is for a dataset of strings with rows = \"row\", without classes or attribute");
  }
}

void read_lengths(const sdk::Options& options, const std::string& what, FieldSettings& field) {
  field.lengths = text_or_empty(options, "lengths");
  if (field.lengths.empty()) return;
  if (field.rows != Rows::row || field.axis != 0 || !field.permute.empty()) {
    sdk::invalid(what +
                 "sets lengths, which tell how much of one row counts; it needs rows = \"row\" along axis 0, and no "
                 "permute");
  }
}

// A row that is a sample by itself has no neighbours to take.
void require_single_row(const FieldSettings& field, const std::string& what) {
  if (field.rows == Rows::all || (field.rows == Rows::row && field.offset == 0)) return;
  sdk::invalid(what +
               "takes rows beside the sample's own, but sample = \"rows\" has rows that belong to no sequence; set "
               "sample = \"windows\", or take out rows, length and offset");
}

// The * of a dataset's name; groups have a setting of their own.
void require_star_at_end(const std::string& what, const std::string& dataset) {
  const std::size_t star = dataset.find('*');
  if (star == std::string::npos) return;
  if (dataset.find('/', star) != std::string::npos)
    sdk::invalid(what + "has a * in a group of its dataset '" + dataset + "'; name groups as groups = \"/...\"");
  if (dataset.find('*', star + 1) != std::string::npos)
    sdk::invalid(what + "has more than one * in its dataset '" + dataset + "'; one numbers the sequences");
}

FieldSettings read_field(const sdk::Options& options, const std::optional<uint64_t>& window_size, Sampling sampling) {
  FieldSettings field;
  field.name = options.string("name");
  const std::string what = "field '" + field.name + "' ";
  field.dataset = options.string("dataset");
  field.member = text_or_empty(options, "member");
  field.attribute = text_or_empty(options, "attribute");
  field.dtype = options.string("dtype");
  const std::string usual = sampling == Sampling::rows ? "row" : "window";
  const std::string rows = options.has("rows") ? options.string("rows") : usual, pad = options.string("pad");
  field.rows = rows == "window" ? Rows::window : rows == "row" ? Rows::row : Rows::all;
  field.pad = pad == "zeros" ? Pad::zeros : pad == "edge" ? Pad::edge : Pad::none;
  field.offset = options.i64("offset");
  field.pad_mask = text_or_empty(options, "pad_mask");
  field.axis = options.i64("axis");
  if (options.has("axes")) field.axes = options.list_string("axes");
  field.unit = text_or_empty(options, "unit");
  field.normalize = options.boolean("normalize");
  if (options.has("permute")) field.permute = options.list_i64("permute");
  read_channels(options, what, field);
  require_star_at_end(what, field.dataset);

  if (!field.attribute.empty()) {
    if (!field.member.empty()) sdk::invalid(what + "names an attribute and a member; an attribute has no members");
    field.rows = Rows::all;
  }
  if (field.rows == Rows::window) {
    if (!options.has("length") && !window_size)
      sdk::invalid(what +
                   "takes a window of rows, but neither window_size nor its length is set; set one of them, or "
                   "rows = \"row\" or \"all\"");
    field.length = options.has("length") ? static_cast<uint64_t>(options.i64("length")) : *window_size;
  } else if (options.has("length")) {
    sdk::invalid(what + "sets length with rows = \"" + rows + "\"; a length belongs to rows = \"window\"");
  }
  if (field.rows == Rows::row) field.length = 1;
  if (field.rows == Rows::all && (field.pad != Pad::none || field.offset != 0))
    sdk::invalid(what + "sets pad or offset, but takes all rows; they belong to rows = \"window\" or \"row\"");
  read_classes(options, what, field);
  read_lengths(options, what, field);
  if (sampling == Sampling::rows) require_single_row(field, what);
  if (!field.pad_mask.empty() && field.pad == Pad::none && field.lengths.empty() && field.text_bytes == 0)
    sdk::invalid(what + "names a pad_mask, but pad = \"none\"; set pad = \"zeros\" or \"edge\", or lengths");
  return field;
}

RowRange read_range(const std::vector<int64_t>& rows, const std::string& what) {
  if (rows.size() != 2 || rows[0] >= rows[1])
    sdk::invalid(what + "needs rows = [from, end], the first row and the one after the last");
  return {static_cast<uint64_t>(rows[0]), static_cast<uint64_t>(rows[1])};
}

SplitSettings read_split(const sdk::Options& options) {
  SplitSettings split;
  split.name = options.string("name");
  if (options.has("files")) split.files = options.list_string("files");
  split.mask = text_or_empty(options, "mask");
  if (options.has("rows")) split.rows = read_range(options.list_i64("rows"), "split '" + split.name + "' ");
  const int ways = (split.files.empty() ? 0 : 1) + (split.mask.empty() ? 0 : 1) + (split.rows ? 1 : 0);
  if (ways != 1) {
    sdk::invalid("split '" + split.name +
                 "' needs one of files (patterns), mask (a dataset of group names, or of a 0 or 1 for each row) and "
                 "rows = [from, end]");
  }
  return split;
}

void require_different_names(const Settings& settings) {
  std::vector<std::string> names;
  for (const FieldSettings& field : settings.fields) {
    names.push_back(field.name);
    if (!field.pad_mask.empty()) names.push_back(field.pad_mask);
  }
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) sdk::invalid("two fields have the name '" + *twice + "'; give each its own");
  std::vector<std::string> splits;
  for (const SplitSettings& split : settings.splits) splits.push_back(split.name);
  std::ranges::sort(splits);
  const auto same = std::ranges::adjacent_find(splits);
  if (same != splits.end()) sdk::invalid("two splits have the name '" + *same + "'; one is enough");
}

void read_crop(const sdk::Options& options, Settings& settings) {
  settings.crop_axes = options.list_string("crop_axes");
  if (!options.has("crop")) return;
  for (const int64_t extent : options.list_i64("crop")) settings.crop.push_back(static_cast<uint64_t>(extent));
  if (settings.crop.size() != settings.crop_axes.size())
    sdk::invalid("crop has " + std::to_string(settings.crop.size()) + " values for the " +
                 std::to_string(settings.crop_axes.size()) + " axes " + sdk::listing(settings.crop_axes) +
                 "; give one for each");
}

}  // namespace

sdk::OptionList option_list() {
  using namespace sdk;
  return {
      opt_path("path").required().help("folder of HDF5 files, or one file"),
      opt_strings("files")
          .def("[\"*.hdf5\", \"*.h5\", \"*.mat\"]")
          .help("patterns below a folder `path`: * and ? within a name, ** for any folders"),
      opt_string("groups").def("/").help(
          "HDF5 groups, each a sequence of its own: \"/data/*\"; /: the whole file is one"),
      opt_string("episode_ends")
          .help(
              "a dataset of integers, as \"meta/episode_ends\": sequences lie end to end, and each ends before such a "
              "row"),
      opt_string("sample")
          .def("windows")
          .choices({"windows", "one_per_group", "rows"})
          .help("windows: at every stride of each sequence; one_per_group: one of each, in training at a random row; "
                "rows: each row, and no two belong together"),
      opt_i64("window_size").min(1).max(kMost).help("rows of fields with rows = \"window\""),
      opt_i64("stride").def(1).min(1).max(kMost).help("rows from one sample's first row to the next"),
      opt_bool("jitter").def(true).help("in training, a window starts up to stride - 1 rows later"),
      opt_i64s("crop").min(1).help("extents of a box cut from the crop_axes: in training anywhere, else in the middle"),
      opt_strings("crop_axes").def("[\"height\", \"width\"]").help("of the fields that have axes of these names"),
      opt_bool("matlab").def(false).help("axes as MATLAB's size() shows them, for files of MATLAB v7.3"),
      opt_bool("check_finite").def(true).help("NaN and infinite values are an error that names their place"),
      opt_f64("sample_rate_hz").def(0.0).min(0.0).help("rows per second, passed to models; 0: none"),
      opt_tables("fields", field_options()).required().help("one table a field"),
      opt_tables("splits", {opt_string("name").required().choices({"train", "val", "test"}).help("the split"),
                            opt_strings("files").help("patterns below `path`"),
                            opt_string("mask").help("a dataset that names the groups, as robomimic's /mask/train, or "
                                                    "holds a 0 or 1 for each row (for each episode of episode_ends)"),
                            opt_i64s("rows").min(0).help("[from, end]: rows of the one sequence that there is, without "
                                                         "the row `end`")})
          .help("splits that the layout defines; without them the host divides the sequences"),
  };
}

Settings read_settings(const sdk::Options& options) {
  Settings settings;
  settings.path = options.path("path");
  settings.files = options.list_string("files");
  settings.groups = options.string("groups");
  settings.episode_ends = text_or_empty(options, "episode_ends");
  const std::string sample = options.string("sample");
  settings.sampling = sample == "rows"            ? Sampling::rows
                      : sample == "one_per_group" ? Sampling::one_per_group
                                                  : Sampling::windows;
  if (settings.sampling == Sampling::rows && !settings.episode_ends.empty())
    sdk::invalid("episode_ends ties rows together, and sample = \"rows\" parts them; take one of them out");
  settings.stride = static_cast<uint64_t>(options.i64("stride"));
  settings.jitter = options.boolean("jitter");
  settings.matlab = options.boolean("matlab");
  settings.check_finite = options.boolean("check_finite");
  settings.sample_rate_hz = options.f64("sample_rate_hz");
  read_crop(options, settings);
  std::optional<uint64_t> window_size;
  if (options.has("window_size")) window_size = static_cast<uint64_t>(options.i64("window_size"));
  for (const sdk::Options& field : options.tables("fields")) {
    settings.fields.push_back(read_field(field, window_size, settings.sampling));
  }
  for (const FieldSettings& field : settings.fields) {
    if (settings.matlab && (!field.lengths.empty() || field.text_bytes > 0)) {
      sdk::invalid("field '" + field.name +
                   "' sets lengths or text_bytes, which are not for matlab = true, where axes are reversed");
    }
  }
  if (settings.fields.empty()) sdk::invalid("fields is empty; name at least one, with its dataset");
  if (options.has("splits")) {
    for (const sdk::Options& split : options.tables("splits")) settings.splits.push_back(read_split(split));
  }
  require_different_names(settings);
  return settings;
}

}  // namespace hdf5_source
