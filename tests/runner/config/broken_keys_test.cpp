// Files that are not TOML, lack a key, or set one nobody knows: the exact sentence for each.

#include <gtest/gtest.h>
#include <string>

#include "files.hpp"

namespace headroom {

namespace {

std::string deep_key() {
  std::string key = "a";
  for (int i = 0; i < 100; ++i) key += ".a";
  return key;
}

const BrokenFile cases[] = {
    {"NotToml", required_keys + "[train\nepochs = 3\n",
     R"([config] FILE:4:7: this is not valid TOML: Error while parsing table header: expected ']', saw '\n')"},
    {"ValueMissing", required_keys + "train.epochs =\n",
     R"([config] FILE:4:15: this is not valid TOML: Error while parsing key-value pair: expected value, saw '\n')"},
    {"KeyTwice", required_keys + "train.epochs = 1\ntrain.epochs = 2\n",
     "[config] FILE:5:16: this is not valid TOML: Error while parsing key-value pair: cannot redefine existing integer "
     "'train.epochs'"},
    {"StringNotClosed", required_keys + "train.precision = \"fp32\n",
     "[config] FILE:4:24: this is not valid TOML: Error while parsing string: unescaped control characters other than "
     "TAB (U+0009) are explicitly prohibited"},
    {"NotUtf8", required_keys + "train.precision = \"\xff\"\n",
     "[config] FILE:4:19: this is not valid TOML: Encountered invalid utf-8 sequence"},
    {"EmptyFile", "", R"([config] FILE: experiment.name is missing; add name = "..." under [experiment])"},
    {"NoName", "[experiment]\nseed = 1\n[model]\nplugin = \"m\"\n[data]\nsource = \"s\"\n",
     R"([config] FILE:1:1: experiment.name is missing; add name = "..." under [experiment])"},
    {"NoPlugin", "[experiment]\nname = \"x\"\n[model]\n[data]\nsource = \"s\"\n",
     R"([config] FILE:3:1: model.plugin is missing; add plugin = "..." under [model])"},
    {"NoData", "[experiment]\nname = \"x\"\n[model]\nplugin = \"m\"\n",
     R"([config] FILE: data.source is missing; add source = "..." under [data])"},
    {"UnknownKey", required_keys + "[train]\nbatch_sise = 8\n",
     "[config] FILE:5:1: unknown key train.batch_sise; did you mean train.batch_size (an integer of at least 1)?"},
    {"UnknownKeyFar", required_keys + "[eval]\nzzzzzzzz = 8\n",
     "[config] FILE:5:1: unknown key eval.zzzzzzzz; [eval] may hold every_epochs"},
    {"UnknownSection", required_keys + "[optimiser]\nlr = 1\n",
     "[config] FILE:4:2: unknown key optimiser; did you mean [train.optimizer]?"},
    {"UnknownSectionNear", required_keys + "[trian]\nepochs = 1\n",
     "[config] FILE:4:2: unknown key trian; did you mean [train]?"},
    {"KeyInWrongSection", required_keys + "[train]\nnum_workers = 2\n",
     "[config] FILE:5:1: unknown key train.num_workers; did you mean data.num_workers (an integer from 0 to 1024)?"},
    {"KeyWithoutSection", required_keys + "batch_size = 8\n",
     "[config] FILE:4:1: unknown key batch_size; did you mean train.batch_size (an integer of at least 1)?"},
    {"UpperCaseKey", required_keys + "BATCH_SIZE = 8\n",
     "[config] FILE:4:1: unknown key BATCH_SIZE; did you mean train.batch_size (an integer of at least 1)?"},
    {"OldAccumulation", required_keys + "[train]\naccumulation_steps = 4\n",
     "[config] FILE:5:1: unknown key train.accumulation_steps; Headroom calls it train.gradient_accumulation_steps (an "
     "integer of at least 1)"},
    {"OldMetrics", required_keys + "compute_metrics_online = false\n",
     R"([config] FILE:4:1: unknown key compute_metrics_online; Headroom calls it metrics.mode ("online", "sampled" or "full"): write mode = "online" under [metrics] for true, "full" for false)"},
    {"OldCache", required_keys + "CACHE_SIZE_GB = 50\n",
     R"([config] FILE:4:1: unknown key CACHE_SIZE_GB; Headroom calls it data.cache_size (a size such as "64 MiB" or a number of bytes): write a size with its unit, as "50 GiB")"},
    {"OldWorkers", required_keys + "NUM_WORKERS = 12\n",
     "[config] FILE:4:1: unknown key NUM_WORKERS; did you mean data.num_workers (an integer from 0 to 1024)?"},
    {"LightningClip", required_keys + "[trainer]\ngradient_clip_val = 1.0\n",
     "[config] FILE:4:2: unknown key trainer; Headroom calls it [train]"},
    {"LightningKey", required_keys + "[train]\naccumulate_grad_batches = 4\n",
     "[config] FILE:5:1: unknown key train.accumulate_grad_batches; Headroom calls it "
     "train.gradient_accumulation_steps (an integer of at least 1)"},
    {"AcceleratePrecision", required_keys + "[train]\nmixed_precision = \"bf16\"\n",
     R"([config] FILE:5:1: unknown key train.mixed_precision; Headroom calls it train.precision ("fp32", "bf16", "fp16" or "fp64"): write "bf16" or "fp16" for mixed precision)"},
    {"ComposerLength", required_keys + "max_duration = \"100ep\"\n",
     "[config] FILE:4:1: unknown key max_duration; Headroom calls it train.epochs (an integer of at least 1)"},
    {"NoSuchThing", required_keys + "[train]\nval_batch_size = 8\n",
     "[config] FILE:5:1: unknown key train.val_batch_size; evaluation uses train.batch_size; remove it"},
    {"H5pyCache", required_keys + "rdcc_w0 = 0.75\n",
     "[config] FILE:4:1: unknown key rdcc_w0; the least recently used chunk is evicted first; remove it"},
    {"WorldSize", required_keys + "world_size = 2\n",
     "[config] FILE:4:1: unknown key world_size; divide a run among processes with `headroom run FILE --nproc N` or a "
     "launcher (docs/processes.md); remove it"},
    {"Autocast", required_keys + "[train]\nuse_amp = true\n",
     R"([config] FILE:5:1: unknown key train.use_amp; Headroom calls it train.precision ("fp32", "bf16", "fp16" or "fp64"): write "bf16" or "fp16" for mixed precision)"},
    {"OptionBesidePlugin", required_keys + "model.kl_weight = 10\n",
     "[config] FILE:4:7: unknown key model.kl_weight; options of the plugin are set under [model.options]"},
    {"QuotedDots", required_keys + "\"train.epochs\" = 3\n",
     R"([config] FILE:4:1: unknown key "train.epochs"; in quotes its dots are part of one name: write it without quotes)"},
    {"SweepUnknown", required_keys + "[sweep]\n\"train.batch_sise\" = [8, 16]\n",
     R"([config] FILE:5:1: sweep."train.batch_sise" is not a key that can be swept; did you mean train.batch_size (an integer of at least 1)?)"},
    {"ExtendsNotAString", required_keys + "extends = [\"a.toml\"]\n",
     R"([config] FILE:4:11: extends is the list ["a.toml"]; it must be the path of one experiment file, relative to this one)"},
    {"ExtendsMissing", required_keys + "extends = \"nowhere.toml\"\n",
     "[config] FILE:4:11: extends names a file that cannot be used: FOLDER/nowhere.toml does not exist; give the path "
     "of an experiment file (TOML)"},
    {"RemoveWithoutExtends", required_keys + "remove = [\"rescue\"]\n",
     "[config] FILE:4:10: remove takes keys out of the file that this one extends; this file has no extends"},
    {"ExtendsItself", required_keys + "extends = \"experiment.toml\"\n",
     "[config] FILE:4:11: extends goes round in a circle: FILE -> FILE; remove one of these extends"},
    {"DeepKey", required_keys + deep_key() + " = 1\n",
     "[config] FILE: a key has more than 64 dotted parts; experiment files need at most four"},
    {"DeepKeyBehindAHashInQuotes", required_keys + "x = { s = \"\\\"#\", t = '#', " + deep_key() + " = 1 }\n",
     "[config] FILE: a key has more than 64 dotted parts; experiment files need at most four"},
    {"DeepKeyBehindLinesInQuotes", required_keys + "x = { s = \"\"\"\n# \"\"\"\"\", " + deep_key() + " = 1 }\n",
     "[config] FILE: a key has more than 64 dotted parts; experiment files need at most four"},
    {"DeepKeyInQuotes", required_keys + replaced(deep_key(), "a", "\"/\"") + " = 1\n",
     "[config] FILE: a key has more than 64 dotted parts; experiment files need at most four"},
    {"NothingLikeIt", required_keys + "[zzzzzzzzzz]\nx = true\n",
     "[config] FILE:4:2: unknown key zzzzzzzzzz; a file may hold experiment, model, data, train, eval, checkpoint, "
     "metrics, memory, record, init, rescue or sweep"},
};

class BrokenKeys : public testing::TestWithParam<BrokenFile> {};

TEST_P(BrokenKeys, IsRefusedWithThisSentence) { EXPECT_EQ(refusal_of(GetParam()), GetParam().sentence); }

INSTANTIATE_TEST_SUITE_P(Files, BrokenKeys, testing::ValuesIn(cases), [](const auto& test) { return test.param.name; });

}  // namespace

}  // namespace headroom
