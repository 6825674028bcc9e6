"""Mistakes in a datasource: edits of NAME.cpp as `headroom new source` makes it, NAME being reach."""
from mistake import CHECK, COMPILER, NOBODY, RUN, TOLD, Mistake

INCLUDES = "#include <cmath>\n"
MEMBERS = "  double noise_;\n"
BUILT = "        noise_(options.f64(\"noise\")) {}\n"
FIELD_Y = "            {.name = \"y\", .shape = {1}}};\n"
LENGTH = "  uint64_t length() const { return recordings_ * samples_; }\n"
GROUPS = "  std::vector<Group> groups() const {\n"
GROUP = "i * samples_, samples_});\n"
AUGMENTS = "  bool augments() const { return false; }\n"
READ = "  void read(const ReadRequest& request) const {\n"
KEY = "      const uint64_t key = hr_sample_key(/*seed=*/1, request.split(), /*epoch=*/0, request.index(i));\n"
SAMPLE = "      double y = noise_ * normal(key, \"noise\"_site);\n"
SLOTS = "      const auto x = request.slot<float>(0, i), target = request.slot<float>(1, i);\n"
CHANNELS = "      for (int64_t channel = 0; channel < inputs; ++channel) {\n"
SLOT_X = "        if (!x.empty()) x[static_cast<std::size_t>(channel)] = static_cast<float>(value);\n"
SLOT_Y = "      if (!target.empty()) target[0] = static_cast<float>(y);\n"


def before(place, code):
    return (place, code + place)


def after(place, code):
    return (place, place + code)


def member(code):
    return after(MEMBERS, f"  {code}\n")


def built(code):
    return (BUILT, BUILT[:-2] + f"\n    {code}\n  }}\n")


MISTAKES = [
    Mistake("a slot left unfilled by one element", [(CHANNELS, CHANNELS.replace("channel = 0", "channel = 1"))], CHECK,
            check="is not written whole"),
    Mistake("a slot overrun by one element", [after(SLOT_Y, "      if (!x.empty()) x.data()[inputs] = 0.0f;\n")], CHECK,
            check="writes beside the slot"),
    Mistake("groups() called group()", [(GROUPS, GROUPS.replace("groups", "group"))], COMPILER, check="the member's name is groups"),
    Mistake("groups() misspelt otherwise", [(GROUPS, GROUPS.replace("groups", "gruops"))], TOLD, run=(0, "is a group of its own")),
    Mistake("NaN in one sample of a thousand",
            [before(SLOT_Y, "      if (request.index(i) == 437 && !x.empty()) x[2] = std::nanf(\"\");\n")], RUN, run=(7, "437")),
    Mistake("samples that depend on the order of reads",
            [member("mutable uint64_t reads_ = 0;"), after(SAMPLE, "      y += static_cast<double>(reads_++ % 7);\n")], CHECK,
            check="what it does not draw from the key is the same each time"),
    Mistake("random numbers of the process",
            [(INCLUDES, INCLUDES + "#include <cstdlib>\n"), after(SAMPLE, "      y += std::rand() % 7;\n")], CHECK,
            check="is the same each time"),
    Mistake("one buffer for all threads",
            [member("mutable std::vector<double> values_;"), built("values_.resize(inputs);"),
             (SLOT_X, "        values_[static_cast<std::size_t>(channel)] = value;\n"),
             before(SLOT_Y, "      for (std::size_t channel = 0; channel < x.size(); ++channel) x[channel] = static_cast<float>(values_[channel]);\n")],
            CHECK, check="changes while other threads read"),
    Mistake("an index out of range at the last sample",
            [member("std::vector<double> offsets_;"), built("offsets_.resize(recordings_ * samples_);"),
             after(SAMPLE, "      y += offsets_.at(request.index(i) + 1);\n")], CHECK, check="range_check", run=(3, "range_check")),
    Mistake("length() one too many", [(LENGTH, LENGTH.replace("samples_;", "samples_ + 1;"))], CHECK,
            check="the groups of split 'all' end at sample 1000; the split has 1001", run=(3, "end at sample 1000")),
    Mistake("length() of half the samples", [(LENGTH, LENGTH.replace("samples_;", "samples_ / 2;"))], CHECK,
            check="must tile", run=(3, "must tile")),
    Mistake("groups that overlap by a sample", [(GROUP, "i * samples_, samples_ + 1});\n")], CHECK, check="must tile",
            run=(3, "must tile")),
    Mistake("64 MiB that are not accounted", [member("std::vector<float> table_;"), built("table_.assign(16u << 20, 1.0f);")], TOLD,
            run=(0, "other 12")),
    Mistake("a read that never returns", [(INCLUDES, INCLUDES + "#include <chrono>\n#include <thread>\n"),
                                          before(SAMPLE, "      if (request.index(i) % 2 == 0) std::this_thread::sleep_for(std::chrono::hours(1));\n")],
            CHECK, code=None, check="'reach read' has not returned", run=(None, ""), seconds=10.0,
            environment={"HEADROOM_STALL_SECONDS": "2"}),
    Mistake("exit(0) in a read", [(INCLUDES, INCLUDES + "#include <cstdlib>\n"), before(SAMPLE, "      std::exit(0);\n")], CHECK,
            check="exit()", run=(3, "exit()")),
    Mistake("a null pointer in a read", [before(SAMPLE, "      *static_cast<volatile int*>(nullptr) = 1;\n")], CHECK,
            check="reach read: the plugin crashed there", run=(70, "inside the plugin call 'reach read'")),
    Mistake("another dtype in the read than in the description",
            [(SLOTS, "      const auto x = request.slot<double>(0, i);\n      const auto target = request.slot<float>(1, i);\n"),
             (SLOT_X, SLOT_X.replace("static_cast<float>(value)", "value"))], CHECK,
            check="another type than it declared", run=(3, "another type than it declared")),
    Mistake("another shape in the description than in the read", [(FIELD_Y, FIELD_Y.replace("{1}", "{2}"))], CHECK,
            check="field 'y' of sample"),
    Mistake("jitter by the key, though augments() says no", [after(SAMPLE, "      if (request.augment()) y += normal(request.key(i), \"jitter\"_site);\n")],
            CHECK, check="changes with its key"),
    Mistake("jitter in evaluation too",
            [(AUGMENTS, ""), after(SAMPLE, "      y += normal(request.key(i), \"jitter\"_site);\n")], CHECK, check="where it is not to be augmented"),
    Mistake("jitter from the batch's first key",
            [(AUGMENTS, ""), after(SAMPLE, "      if (request.augment()) y += normal(request.key(0), \"jitter\"_site);\n")], CHECK,
            check="changes with its batch"),
    Mistake("a field that is filled only beside another", [(SLOT_X, SLOT_X.replace("!x.empty()", "!x.empty() && !target.empty()"))],
            CHECK, check="field 'x' changes when others are not wanted"),
    Mistake("a target that is standardised twice",
            [(FIELD_Y, "            {.name = \"y\", .shape = {1}, .channel_axis = 0, .normalize = true, .channels = {{.name = \"y\", .mean = 0.0, .std = 5.0}}}};\n"),
             (SLOT_Y, SLOT_Y.replace("(y)", "(y / 5.0)"))], NOBODY,
            why="as good as once, and predictions are measured in what both make of it"),
    Mistake("a field that never changes", [(SLOT_X, SLOT_X.replace("(value)", "(0.0 * value)"))], TOLD, run=(0, "field 'x' is constant in 4 of 4 channels")),
    Mistake("a leak of 1 MiB a read", [(INCLUDES, "#include <algorithm>\n" + INCLUDES),
                                       after(SAMPLE, "      if (i == 0) std::fill_n(new float[1u << 18], 1u << 18, 1.0f);\n")], TOLD,
            run=(0, "leak: "), settings=["train.epochs=4"]),
    Mistake("the inputs of the sample before it", [(KEY, KEY.replace("request.index(i)", "(request.index(i) + 999) % 1000")), ("normal(key, \"x\"_site", "normal(hr_sample_key(1, request.split(), 0, request.index(i)), \"x\"_site")], NOBODY,
            why="numbers like others"),
    Mistake("a wrong unit", [(FIELD_Y, "            {.name = \"y\", .shape = {1}, .unit = \"m\"}};\n")], NOBODY,
            why="only the author knows it"),
]
