// Values of the wrong type, out of range or at odds with each other: the exact sentence for each.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "config/rules.hpp"
#include "files.hpp"

namespace headroom {

namespace {

const BrokenFile cases[] = {
    {"SectionIsValue", required_keys + "train = 5\n",
     "[config] FILE:4:9: train is the integer 5; it must be a table: write [train] and its keys below it"},
    {"KeyIsTable", required_keys + "[train.epochs]\nn = 3\n",
     "[config] FILE:4:1: train.epochs is a table; it must be an integer of at least 1"},
    {"StringForInteger", required_keys + "[train]\nbatch_size = \"8\"\n",
     R"([config] FILE:5:14: train.batch_size is the string "8"; it must be an integer of at least 1: write 8 without quotes)"},
    {"FloatForInteger", required_keys + "[train]\nepochs = 1e2\n",
     "[config] FILE:5:10: train.epochs is the number 100.0; it must be an integer of at least 1: write 100"},
    {"IntegerForString", "experiment.name = 5\nmodel.plugin = \"m\"\ndata.source = \"s\"\n",
     R"([config] FILE:1:19: experiment.name is the integer 5; it must be a name of at most 100 characters without "/" that does not begin with "." or "-": write it in quotes, "5")"},
    {"StringForBoolean", required_keys + "[train]\ndrop_last = \"true\"\n",
     R"([config] FILE:5:13: train.drop_last is the string "true"; it must be true or false: write true without quotes)"},
    {"StringForNumber", required_keys + "[train]\nclip_norm = \"1.0\"\n",
     R"([config] FILE:5:13: train.clip_norm is the string "1.0"; it must be a number of at least 0: write 1.0 without quotes)"},
    {"BooleanForNumber", required_keys + "[train]\nclip_norm = true\n",
     "[config] FILE:5:13: train.clip_norm is true; it must be a number of at least 0"},
    {"DateForInteger", required_keys + "[train]\nepochs = 2024-01-01\n",
     "[config] FILE:5:10: train.epochs is the date 2024-01-01; it must be an integer of at least 1"},
    {"ListForInteger", required_keys + "[train]\nepochs = [1, 2]\n",
     "[config] FILE:5:10: train.epochs is the list [1, 2]; it must be an integer of at least 1"},
    {"ZeroBatch", required_keys + "[train]\nbatch_size = 0\n",
     "[config] FILE:5:14: train.batch_size is the integer 0; it must be an integer of at least 1"},
    {"NegativeClip", required_keys + "[train]\nclip_norm = -1.0\n",
     "[config] FILE:5:13: train.clip_norm is the number -1.0; it must be a number of at least 0"},
    {"NegativeClipOfValues", required_keys + "[train]\nclip_value = -1\n",
     "[config] FILE:5:14: train.clip_value is the integer -1; it must be a number of at least 0"},
    {"InfiniteRate", required_keys + "[train]\noptimizer = { lr = inf }\n",
     "[config] FILE:5:20: train.optimizer.lr is the number inf; it must be a number above 0"},
    {"ZeroRate", required_keys + "[train]\noptimizer = { lr = 0 }\n",
     "[config] FILE:5:20: train.optimizer.lr is the integer 0; it must be a number above 0"},
    {"NotANumber", required_keys + "[train]\nclip_norm = nan\n",
     "[config] FILE:5:13: train.clip_norm is the number nan; it must be a number of at least 0"},
    {"BetasOutOfRange", required_keys + "[train]\noptimizer = { betas = [0.9, 1.0] }\n",
     "[config] FILE:5:23: train.optimizer.betas is the list [0.9, 1.0]; it must be a list of two numbers from 0 to "
     "below 1"},
    {"OneBeta", required_keys + "[train]\noptimizer = { betas = [0.9] }\n",
     "[config] FILE:5:23: train.optimizer.betas is the list [0.9]; it must be a list of two numbers from 0 to below 1"},
    {"OptimizerMisspelt", required_keys + "[train]\noptimizer = { name = \"AdamV\" }\n",
     R"([config] FILE:5:22: train.optimizer.name is the string "AdamV"; it must be "adam", "adamw", "sgd", "rmsprop", "lion" or "lamb", or the id or the path of a plugin: did you mean "adamw"?)"},
    {"OptimizerAsLibTorchSpellsIt", required_keys + "[train]\noptimizer = { name = \"RMSprop\" }\n",
     R"([config] FILE:5:22: train.optimizer.name is the string "RMSprop"; it must be "adam", "adamw", "sgd", "rmsprop", "lion" or "lamb", or the id or the path of a plugin: did you mean "rmsprop"?)"},
    {"OptimizerOfAnotherProgram", required_keys + "[train]\noptimizer = { name = \"FusedLAMB\" }\n",
     R"([config] FILE:5:22: train.optimizer.name is the string "FusedLAMB"; it must be "adam", "adamw", "sgd", "rmsprop", "lion" or "lamb", or the id or the path of a plugin: did you mean "lamb"?)"},
    {"OptimizerWithAnOldName", required_keys + "[train]\noptimizer = { name = \"adamw_torch\" }\n",
     R"([config] FILE:5:22: train.optimizer.name is the string "adamw_torch"; it must be "adam", "adamw", "sgd", "rmsprop", "lion" or "lamb", or the id or the path of a plugin: did you mean "adamw"?)"},
    {"OptimizerIsString", required_keys + "[train]\noptimizer = \"adamw\"\n",
     R"([config] FILE:5:13: train.optimizer is the string "adamw"; it must be a table with name, lr, weight_decay, betas, eps, alpha, momentum or nesterov)"},
    {"ScheduleUnknown", required_keys + "[train]\nschedule = { name = \"polynomial\" }\n",
     R"([config] FILE:5:21: train.schedule.name is the string "polynomial"; it must be "constant", "cosine", "cosine_restarts", "linear", "one_cycle", "plateau", "step" or "table")"},
    {"ScheduleAsLibTorchSpellsIt", required_keys + "[train]\nschedule = { name = \"OneCycleLR\" }\n",
     R"([config] FILE:5:21: train.schedule.name is the string "OneCycleLR"; it must be "constant", "cosine", "cosine_restarts", "linear", "one_cycle", "plateau", "step" or "table": did you mean "one_cycle"?)"},
    {"TableWithoutPoints", required_keys + "[train]\nschedule = { name = \"table\" }\n",
     "[config] FILE:5:21: train.schedule.name is \"table\" but train.schedule.points is not set; write a list of "
     "[epoch, factor] whose epochs never fall, as [[0, 0.1], [5, 1.0], [30, 0.01]]"},
    {"PointsThatFall", required_keys + "[train]\nschedule = { points = [[5, 1], [3, 0.5]] }\n",
     "[config] FILE:5:23: train.schedule.points is a list; it must be a list of [epoch, factor] whose epochs never "
     "fall, as [[0, 0.1], [5, 1.0], [30, 0.01]]"},
    {"PointWithoutFactor", required_keys + "[train]\nschedule = { points = [[5, 1], [6]] }\n",
     "[config] FILE:5:23: train.schedule.points is a list; it must be a list of [epoch, factor] whose epochs never "
     "fall, as [[0, 0.1], [5, 1.0], [30, 0.01]]"},
    {"NoPoints", required_keys + "[train]\nschedule = { points = [] }\n",
     "[config] FILE:5:23: train.schedule.points is an empty list; it must be a list of [epoch, factor] whose epochs "
     "never fall, as [[0, 0.1], [5, 1.0], [30, 0.01]]"},
    {"PointsBelowZero", required_keys + "[train]\nschedule = { points = [[0, -1]] }\n",
     "[config] FILE:5:23: train.schedule.points is a list; it must be a list of [epoch, factor] whose epochs never "
     "fall, as [[0, 0.1], [5, 1.0], [30, 0.01]]"},
    {"SweptPoints", required_keys + "[sweep]\n\"train.schedule.points\" = [[[0, 1]], [[0, 1], [1]]]\n",
     R"([config] FILE:5:38: sweep."train.schedule.points"[1] is a list; it must be a list of [epoch, factor] whose epochs never fall, as [[0, 0.1], [5, 1.0], [30, 0.01]])"},
    {"PatienceZero", required_keys + "[train]\nearly_stop = { patience = 0 }\n",
     "[config] FILE:5:27: train.early_stop.patience is the integer 0; it must be an integer of at least 1"},
    {"DecayOne", required_keys + "[train]\nema = { decay = 1.0 }\n",
     "[config] FILE:5:17: train.ema.decay is the number 1.0; it must be a number from 0 to below 1"},
    {"Fp8", required_keys + "[train]\nprecision = \"fp8\"\n",
     R"([config] FILE:5:13: train.precision is the string "fp8"; it must be "fp32", "bf16", "fp16" or "fp64": did you mean "fp32"?)"},
    {"MicroBatchWord", required_keys + "[train]\nmicro_batch = \"all\"\n",
     R"([config] FILE:5:15: train.micro_batch is the string "all"; it must be "auto" or an integer of at least 1)"},
    {"MicroBatchTooLarge", required_keys + "[train]\nbatch_size = 8\nmicro_batch = 16\n",
     R"([config] FILE:6:15: train.micro_batch is 16 but train.batch_size is 8; a micro-batch is a slice of a batch: lower it or write "auto")"},
    {"WarmupTooLong", required_keys + "[train]\nepochs = 5\nschedule = { name = \"cosine\", warmup_epochs = 5 }\n",
     "[config] FILE:6:47: train.schedule.warmup_epochs is 5 but train.epochs is 5; warm-up must end before training "
     "does: lower it or raise train.epochs"},
    {"TwoWarmups", required_keys + "[train]\nepochs = 5\nschedule = { warmup_epochs = 1, warmup_steps = 10 }\n",
     "[config] FILE:6:48: train.schedule.warmup_steps is 10 while train.schedule.warmup_epochs is 1; only one of the "
     "two may be set: make the other 0"},
    {"EndAboveStart",
     required_keys + "[train]\noptimizer = { lr = 1e-4 }\nschedule = { name = \"cosine\", min_lr = 1e-3 }\n",
     "[config] FILE:6:40: train.schedule.min_lr is 0.001 but train.optimizer.lr is 1e-4; it must not be larger: lower "
     "it"},
    {"GroupsAreNoList", required_keys + "[train]\ngroups = { match = \"a\" }\n",
     R"([config] FILE:5:10: train.groups is a table; it must be a list of tables, as [{ match = "backbone.*", lr_scale = 0.1 }])"},
    {"GroupIsNoTable", required_keys + "[train]\ngroups = [\"a.*\"]\n",
     R"([config] FILE:5:10: train.groups is the list ["a.*"]; it must be a list of tables, as [{ match = "backbone.*", lr_scale = 0.1 }])"},
    {"GroupWithoutMatch", required_keys + "[train]\ngroups = [{ freeze = true }]\n",
     R"([config] FILE:5:11: train.groups[0] has no match; write which parameters it is for, as match = "backbone.*")"},
    {"GroupOfNothing", required_keys + "[train]\ngroups = [{ match = \"\" }]\n",
     R"([config] FILE:5:21: train.groups[0].match is the string ""; it must be a pattern (*, ?) of the names of parameters, as "backbone.*")"},
    {"GroupWithARate", required_keys + "[train]\ngroups = [{ match = \"a\", lr = 0.1 }]\n",
     R"([config] FILE:5:26: train.groups[0] has the unknown key lr; the rate of a group is a factor of train.optimizer.lr: write lr_scale)"},
    {"GroupUnknownKey", required_keys + "[train]\ngroups = [{ match = \"a\", frozen = true }]\n",
     "[config] FILE:5:26: train.groups[0] has the unknown key frozen; a group may hold match, lr_scale, weight_decay "
     "or "
     "freeze"},
    {"GroupScaleZero", required_keys + "[train]\ngroups = [{ match = \"a\" }, { match = \"b\", lr_scale = 0 }]\n",
     R"([config] FILE:5:54: train.groups[1].lr_scale is the integer 0; it must be a number above 0)"},
    {"GroupDecayNegative", required_keys + "[train]\ngroups = [{ match = \"a\", weight_decay = -0.1 }]\n",
     R"([config] FILE:5:41: train.groups[0].weight_decay is the number -0.1; it must be a number of at least 0)"},
    {"GroupFreezeWord", required_keys + "[train]\ngroups = [{ match = \"a\", freeze = \"yes\" }]\n",
     R"([config] FILE:5:35: train.groups[0].freeze is the string "yes"; it must be true or false)"},
    {"GroupFrozenAndScaled", required_keys + "[train]\ngroups = [{ match = \"a\", freeze = true, lr_scale = 0.1 }]\n",
     R"([config] FILE:5:11: train.groups[0] sets freeze = true beside lr_scale; parameters that are frozen stay as they are: leave one of them out)"},
    {"NesterovAlone", required_keys + "[train]\noptimizer = { name = \"sgd\", nesterov = true }\n",
     "[config] FILE:5:40: train.optimizer.nesterov is true but train.optimizer.momentum is 0; Nesterov's method needs "
     "momentum: set it, as 0.9"},
    {"SplitSum", required_keys + "data.split = { train = 0.8, val = 0.1, test = 0.2 }\n",
     "[config] FILE:4:14: data.split adds up to 1.1 (train 0.8, val 0.1, test 0.2); train, val and test must add up to "
     "1"},
    {"SplitPartial", required_keys + "data.split = { train = 0.9 }\n",
     "[config] FILE:4:14: data.split adds up to 0.9 (train 0.9, val 0, test 0); train, val and test must add up to 1"},
    {"SplitNegative", required_keys + "data.split = { train = 1.1, val = -0.1 }\n",
     "[config] FILE:4:24: data.split.train is the number 1.1; it must be a number above 0 and up to 1"},
    {"ShuffleTrue", required_keys + "data.shuffle = true\n",
     R"([config] FILE:4:16: data.shuffle is true; it must be "auto", "global", "grouped" or "sequential")"},
    {"WorkersNegative", required_keys + "data.num_workers = -1\n",
     "[config] FILE:4:20: data.num_workers is the integer -1; it must be an integer from 0 to 1024"},
    {"SizeWithoutUnit", required_keys + "data.cache_size = \"50 gigs\"\n",
     R"([config] FILE:4:19: data.cache_size is the string "50 gigs"; it must be a size such as "64 MiB" or a number of bytes)"},
    {"SizeNegative", required_keys + "data.cache_size = -1\n",
     R"([config] FILE:4:19: data.cache_size is the integer -1; it must be a size such as "64 MiB" or a number of bytes)"},
    {"SizeTooLarge", required_keys + "data.cache_size = \"99999999 TiB\"\n",
     R"([config] FILE:4:19: data.cache_size is the string "99999999 TiB"; it must be a size such as "64 MiB" or a number of bytes)"},
    {"ThreadsNegative", required_keys + "experiment.threads = -2\n",
     R"([config] FILE:4:22: experiment.threads is the integer -2; it must be "auto" or an integer from 1 to 4096)"},
    {"DeviceJunk", required_keys + "experiment.device = \"gpu0\"\n",
     R"([config] FILE:4:21: experiment.device is the string "gpu0"; it must be "auto", "cpu", "cuda" or "cuda:N")"},
    {"MetricWithoutSplit", required_keys + "experiment.metric = \"loss\"\n",
     R"([config] FILE:4:21: experiment.metric is the string "loss"; it must be a split and a metric such as "val/loss")"},
    {"NameWithSlash", "experiment.name = \"a/b\"\nmodel.plugin = \"m\"\ndata.source = \"s\"\n",
     R"([config] FILE:1:19: experiment.name is the string "a/b"; it must be a name of at most 100 characters without "/" that does not begin with "." or "-")"},
    {"GcJunk", required_keys + "memory.gc_every = \"often\"\n",
     R"([config] FILE:4:19: memory.gc_every is the string "often"; it must be "epoch", "pressure" or a number of steps of at least 1)"},
    {"GcZero", required_keys + "memory.gc_every = 0\n",
     R"([config] FILE:4:19: memory.gc_every is the integer 0; it must be "epoch", "pressure" or a number of steps of at least 1)"},
    {"LimitAboveAll", required_keys + "memory.limit = \"120%\"\n",
     R"([config] FILE:4:16: memory.limit is the string "120%"; it must be "auto", "off", a share such as "80%" or a size such as "8 GiB")"},
    {"WaitJunk", required_keys + "memory.wait = \"a while\"\n",
     R"([config] FILE:4:15: memory.wait is the string "a while"; it must be a duration such as "10 min" or a number of seconds)"},
    {"IgnoreNotAList", required_keys + "init.ignore = \"head.*\"\n",
     R"([config] FILE:4:15: init.ignore is the string "head.*"; it must be a list of strings: write ["head.*"])"},
    {"MapNotStrings", required_keys + "init.map = { \"a.\" = 1 }\n",
     R"([config] FILE:4:12: init.map is a table; it must be a table of strings, as { "encoder." = "model.encoder." })"},
    {"SweepNotAList", required_keys + "[sweep]\n\"train.batch_size\" = 8\n",
     R"([config] FILE:5:22: sweep."train.batch_size" is the integer 8; it must be a list of the values to try, or a range, as { from = 8, to = 64, step = 8 })"},
    {"SweepConstraint", required_keys + "[sweep]\nconstraint = 5\n",
     "[config] FILE:5:14: sweep.constraint is the integer 5; it must be a string"},
    {"SweptString", required_keys + "[sweep]\n\"train.batch_size\" = [8, \"16\"]\n",
     R"([config] FILE:5:26: sweep."train.batch_size"[1] is the string "16"; it must be an integer of at least 1: write 16 without quotes)"},
    {"SweptZero", required_keys + "[sweep]\ntrain.batch_size = [0]\n",
     R"([config] FILE:5:21: sweep."train.batch_size"[0] is the integer 0; it must be an integer of at least 1)"},
    {"SweptWord", required_keys + "[sweep]\n\"train.optimizer.name\" = [\"sgd\", \"AdamV\"]\n",
     R"([config] FILE:5:34: sweep."train.optimizer.name"[1] is the string "AdamV"; it must be "adam", "adamw", "sgd", "rmsprop", "lion" or "lamb", or the id or the path of a plugin: did you mean "adamw"?)"},
    {"SweptListOfNumbers", required_keys + "[sweep]\n\"train.optimizer.betas\" = [0.9, 0.99]\n",
     R"([config] FILE:5:28: sweep."train.optimizer.betas"[0] is the number 0.9; it must be a list of two numbers from 0 to below 1)"},
    {"SweptPatience", required_keys + "[sweep]\n\"train.early_stop.patience\" = [5, 0]\n",
     R"([config] FILE:5:35: sweep."train.early_stop.patience"[1] is the integer 0; it must be an integer of at least 1)"},
    {"SweptSectionIsNoTable", required_keys + "[sweep]\n\"train.ema\" = [0.9]\n",
     R"([config] FILE:5:16: sweep."train.ema"[0] is the number 0.9; it must be a table with decay)"},
    {"SweptSectionUnknownKey", required_keys + "[sweep]\n\"train.optimizer\" = [{ lr = 0.1 }, { nme = \"sgd\" }]\n",
     R"([config] FILE:5:38: unknown key train.optimizer.nme; did you mean train.optimizer.name ("adam", "adamw", "sgd", "rmsprop", "lion" or "lamb", or the id or the path of a plugin)?)"},
    {"SweptSectionValue", required_keys + "[sweep]\n\"train.optimizer\" = [{ lr = 0.1 }, { lr = 0 }]\n",
     R"([config] FILE:5:43: sweep."train.optimizer"[1].lr is the integer 0; it must be a number above 0)"},
    {"SweptOptionsAreNoTable", required_keys + "[sweep]\n\"model.options\" = [{ a = 1 }, 2]\n",
     R"([config] FILE:5:31: sweep."model.options"[1] is the integer 2; it must be a table)"},
};

class BrokenValues : public testing::TestWithParam<BrokenFile> {};

TEST_P(BrokenValues, IsRefusedWithThisSentence) { EXPECT_EQ(refusal_of(GetParam()), GetParam().sentence); }

INSTANTIATE_TEST_SUITE_P(Files, BrokenValues, testing::ValuesIn(cases),
                         [](const auto& test) { return test.param.name; });

const std::vector<std::string> offered = {"couples_samples", "fp64", "bf16", "rng_keyed"};

TEST(Precision, Float32AndWhatTheModelOffersWork) {
  check_precision("fp32", {}, "m");
  check_precision("bf16", offered, "m");
  check_precision("fp64", offered, "m");
}

TEST(Precision, WhatItDoesNotOfferIsASentence) {
  EXPECT_THAT([] { check_precision("fp16", offered, "m"); },
              testing::ThrowsMessage<Error>(
                  "[train.precision] model 'm' does not work in \"fp16\": use \"fp32\" or \"bf16\" or \"fp64\""));
  EXPECT_THAT([] { check_precision("bf16", {}, "m"); },
              testing::ThrowsMessage<Error>("[train.precision] model 'm' does not work in \"bf16\": use \"fp32\""));
}

}  // namespace

}  // namespace headroom
