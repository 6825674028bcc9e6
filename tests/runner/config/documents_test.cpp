// extends, --set, and where relative paths lead.
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/document.hpp"
#include "config/sentences.hpp"
#include "files.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

std::string placed(const TemporaryFolder& folder, const toml::node* node) {
  return replaced(place(node->source()), folder.path().string() + "/", "");
}

TEST(Extends, LaterKeysWinTablesMergeListsAreReplaced) {
  const TemporaryFolder folder;
  folder.write("base.toml",
               "[train]\nepochs = 100\nbatch_size = 64\noptimizer = { name = \"adamw\", lr = 1e-3 }\n[init]\nfrom = "
               "\"w\"\nignore = [\"a\", \"b\"]\n");
  const auto file = folder.write(
      "top.toml",
      "extends = \"base.toml\"\n[train]\nepochs = 5\noptimizer = { lr = 5e-4 }\n[init]\nignore = [\"c\"]\n");
  const toml::table tree = read_document(file, {});
  EXPECT_FALSE(tree.contains("extends"));
  EXPECT_EQ(*tree["train"]["epochs"].value<int64_t>(), 5);
  EXPECT_EQ(*tree["train"]["batch_size"].value<int64_t>(), 64);
  EXPECT_EQ(*tree["train"]["optimizer"]["name"].value<std::string>(), "adamw");
  EXPECT_EQ(*tree["train"]["optimizer"]["lr"].value<double>(), 5e-4);
  EXPECT_EQ(tree["init"]["ignore"].as_array()->size(), 1u);
}

TEST(Extends, LeavesOutWhatItRemoves) {
  const TemporaryFolder folder;
  folder.write("base.toml",
               "[train]\nepochs = 100\nearly_stop = { patience = 20 }\n[model.options]\na = 1\n[rescue]\nrungs = []\n");
  const auto read = [&](const std::string& remove) {
    const auto file = folder.write("top.toml", "extends = \"base.toml\"\nremove = " + remove +
                                                   "\n[train]\nbatch_size = 4\n[model.options]\nb = 2\n");
    return read_document(file, {});
  };
  const toml::table tree = read("[\"train.early_stop\", \"rescue\", \"model.options\"]");
  EXPECT_FALSE(tree.contains("remove"));
  EXPECT_FALSE(tree.contains("rescue"));
  EXPECT_FALSE(tree["train"]["early_stop"]);
  EXPECT_EQ(*tree["train"]["epochs"].value<int64_t>(), 100);
  EXPECT_FALSE(tree["model"]["options"]["a"]);
  EXPECT_EQ(*tree["model"]["options"]["b"].value<int64_t>(), 2);
  EXPECT_TRUE(read("[]")["train"]["early_stop"]);

  const auto sentence = [&](const std::string& remove) {
    return replaced(refusal([&] { read(remove); }), folder.path().string() + "/", "");
  };
  EXPECT_EQ(sentence("[\"train.early_stop\", \"train.lr\"]"),
            "[config] top.toml:2:31: remove names \"train.lr\", which base.toml does not set; leave it out");
  EXPECT_EQ(sentence("\"rescue\""),
            "[config] top.toml:2:10: remove is the string \"rescue\"; it must be a list of keys that the extended file "
            "sets, as [\"train.early_stop\"]");
}

TEST(Extends, EveryNodeRemembersItsOwnFileLineAndColumn) {
  const TemporaryFolder folder;
  folder.write("base.toml",
               "[train]\nepochs = 100\noptimizer = { name = \"adamw\", lr = 1e-3 }\n[model.options]\nlist = [{ a = 1 "
               "}, { a = 2 }]\n");
  const auto file = folder.write("top.toml", "extends = \"base.toml\"\n[train]\noptimizer = { lr = 5e-4 }\n");
  const toml::table tree = read_document(file, {{"train.epochs", "7"}});
  EXPECT_EQ(placed(folder, tree["train"].node()), "top.toml:2:1");
  EXPECT_EQ(placed(folder, tree["train"]["optimizer"]["lr"].node()), "top.toml:3:20");
  EXPECT_EQ(placed(folder, tree["train"]["optimizer"]["name"].node()), "base.toml:3:22");
  EXPECT_EQ(placed(folder, tree["train"]["epochs"].node()), "--set train.epochs=7");
  EXPECT_EQ(placed(folder, tree["model"]["options"]["list"][1]["a"].node()), "base.toml:5:26");
}

TEST(Extends, KeysOfAnExtendedFileAreRefusedWhereTheyStand) {
  const TemporaryFolder folder;
  folder.write("base/base.toml", required_keys + "[train]\nbatch_sise = 8\n");
  const auto file = folder.write("top.toml", "extends = \"base/base.toml\"\n[train]\nepochs = 3\n");
  EXPECT_EQ(replaced(refusal([&] { load_experiment(file); }), folder.path().string() + "/", ""),
            "[config] base/base.toml:5:1: unknown key train.batch_sise; did you mean train.batch_size (an integer of "
            "at least 1)?");
}

TEST(Extends, CirclesAreRefusedWithTheChain) {
  const TemporaryFolder folder;
  folder.write("b.toml", "extends = \"sub/c.toml\"\n");
  folder.write("sub/c.toml", "\nextends = \"../a.toml\"\n");
  const auto file = folder.write("a.toml", "extends = \"b.toml\"\n");
  EXPECT_EQ(replaced(refusal([&] { load_experiment(file); }), folder.path().string() + "/", ""),
            "[config] sub/c.toml:2:11: extends goes round in a circle: a.toml -> b.toml -> sub/c.toml -> a.toml; "
            "remove one of these extends");
}

TEST(Extends, ACircleThroughALinkIsFound) {
  const TemporaryFolder folder;
  const auto file = folder.write("a.toml", "extends = \"link.toml\"\n");
  fs::create_symlink("a.toml", folder.path() / "link.toml");
  EXPECT_NE(refusal([&] { load_experiment(file); }).find("extends goes round in a circle"), std::string::npos);
}

TEST(Files, WhatCannotBeReadIsSaid) {
  const TemporaryFolder folder;
  const auto sentence = [&](const fs::path& file) {
    return replaced(refusal([&] { load_experiment(file); }), folder.path().string(), "FOLDER");
  };
  EXPECT_EQ(sentence(folder.path() / "none.toml"),
            "[config] FOLDER/none.toml does not exist; give the path of an experiment file (TOML)");
  EXPECT_EQ(sentence(folder.path()), "[config] FOLDER is a folder; give the path of an experiment file (TOML)");
  EXPECT_EQ(sentence(folder.write("long.toml", std::string((size_t{4} << 20) + 1, '#'))),
            "[config] FOLDER/long.toml is larger than 4 MiB; an experiment file is text of a few KiB");
  fs::create_symlink("loop.toml", folder.path() / "loop.toml");
  EXPECT_EQ(sentence(folder.path() / "loop.toml"),
            "[config] FOLDER/loop.toml does not exist; give the path of an experiment file (TOML)");
}

TEST(Files, WithoutPermissionIsSaid) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const TemporaryFolder folder;
  const auto file = folder.write("mine.toml", required_keys);
  chmod(file.c_str(), 0);
  EXPECT_EQ(refusal([&] { load_experiment(file); }),
            "[config] " + file.string() + " cannot be opened for reading; check its permissions");
}

TEST(Set, ValuesAreTomlOrElseStrings) {
  const TemporaryFolder folder;
  const auto file =
      folder.write("x.toml", required_keys + "[train]\nepochs = 100\noptimizer = { name = \"adam\", lr = 1e-3 }\n");
  const Experiment e = load_experiment(file, {{"train.epochs", "8"},
                                              {"train.optimizer.lr", "1e-2"},
                                              {"experiment.device", "cpu"},
                                              {"memory.limit", "2 GiB"},
                                              {"data.split", "{ train = 0.5, val = 0.5 }"},
                                              {"train.optimizer.betas", "[0.5, 0.9]"},
                                              {"model.options.note", "a = \"b\""},
                                              {"train.drop_last", "true"}});
  EXPECT_EQ(e.train.epochs, 8);
  EXPECT_EQ(e.train.optimizer.lr, 1e-2);
  EXPECT_EQ(e.train.optimizer.name, "adam");
  EXPECT_EQ(e.train.optimizer.beta1, 0.5);
  EXPECT_EQ(e.experiment.device, "cpu");
  EXPECT_EQ(e.memory.limit, "2147483648");
  EXPECT_EQ(e.data.split->val, 0.5);
  EXPECT_EQ(*e.model_options["note"].value<std::string>(), "a = \"b\"");
  EXPECT_TRUE(e.train.drop_last);
}

TEST(Set, TheLastOneWins) {
  const TemporaryFolder folder;
  const auto file = folder.write("x.toml", required_keys);
  EXPECT_EQ(load_experiment(file, {{"train.epochs", "8"}, {"train.epochs", "9"}}).train.epochs, 9);
}

TEST(Set, IsRefusedInItsOwnWords) {
  const TemporaryFolder folder;
  const auto file = folder.write("x.toml", required_keys);
  const auto sentence = [&](const char* key, const char* value) {
    return refusal([&] { load_experiment(file, {{key, value}}); });
  };
  EXPECT_EQ(sentence("train.batch_sise", "8"),
            "[config] --set train.batch_sise=8: unknown key train.batch_sise; did you mean train.batch_size (an "
            "integer of at least 1)?");
  EXPECT_EQ(sentence("train.batch_size", "many"),
            "[config] --set train.batch_size=many: train.batch_size is the string \"many\"; it must be an integer of "
            "at least 1");
  EXPECT_EQ(sentence("a..b", "1"), "[config] --set a..b=1: \"a..b\" is not a key; write --set section.key=value");
  EXPECT_EQ(sentence("", "1"), "[config] --set =1: \"\" is not a key; write --set section.key=value");
  EXPECT_EQ(
      sentence("experiment.name", "caf\xe9"),
      "[config] --set experiment.name=caf\xe9: the value is not UTF-8, as TOML must be; write it in that encoding");
  EXPECT_EQ(sentence("extends", "y.toml"),
            "[config] --set extends=y.toml: extends cannot be set here; write it in the file");
  EXPECT_EQ(sentence("train", "5"),
            "[config] --set train=5: train is the integer 5; it must be a table: write [train] and its keys below it");
}

// Where "weights" leads when it is set in a file, in a file that one extends, and by --set.
TEST(Paths, AreRelativeToTheFileThatSetsThem) {
  const TemporaryFolder folder;
  folder.write("base/base.toml", required_keys + "init.from = \"../weights\"\n");
  const auto file = folder.write("top.toml", "extends = \"base/base.toml\"\n");
  const auto other = folder.write("other.toml", "extends = \"base/base.toml\"\n[init]\nfrom = \"sub/weights\"\n");
  EXPECT_EQ(load_experiment(file).init.from, folder.path() / "weights");
  EXPECT_EQ(load_experiment(other).init.from, folder.path() / "sub/weights");
  EXPECT_EQ(load_experiment(file, {{"init.from", "w"}}).init.from, fs::current_path() / "w");
  EXPECT_EQ(load_experiment(file, {{"init.from", "/abs/w"}}).init.from, "/abs/w");
}

TEST(Paths, PluginsWithASlashAreFilesOthersAreIds) {
  const TemporaryFolder folder;
  const auto file =
      folder.write("x.toml", "experiment.name = \"x\"\nmodel.plugin = \"./mine.so\"\ndata.source = \"emg\"\n");
  const Experiment e = load_experiment(file);
  EXPECT_EQ(e.model_plugin, (folder.path() / "mine.so").string());
  EXPECT_EQ(e.data.source, "emg");
}

TEST(Places, FilesBelowTheWorkingFolderAreShownRelativeToIt) {
  const TemporaryFolder folder;
  const fs::path before = fs::current_path();
  folder.write("sub/x.toml", "train = 5\n");
  fs::current_path(folder.path());
  const std::string sentence = refusal([] { load_experiment("sub/x.toml"); });
  fs::current_path(before);
  EXPECT_EQ(sentence,
            "[config] sub/x.toml:1:9: train is the integer 5; it must be a table: write [train] and its keys below it");
}

TEST(Hostile, DotsOfCommentsAndOfSeparateStringsAreNoDeepKeys) {
  const std::string dots(60, '.'), many = dots + dots;
  const Experiment e = loaded("# don't " + many + "\n" + required_keys + "[model.options]\nx = \"" + dots +
                              "\" # it's \"" + many + "\ny = ['" + dots + "', \"\"\"" + dots + "\"\"\"]\n");
  EXPECT_EQ(e.model_options["x"].value<std::string>(), dots);
}

TEST(Hostile, DeepNestingDoesNotCrash) {
  const TemporaryFolder folder;
  std::string braces, brackets = "x = ";
  for (int i = 0; i < 20000; ++i) braces += "x = { ";
  for (int i = 0; i < 20000; ++i) brackets += "[";
  std::string parts = "a", nested;
  for (int i = 0; i < 60; ++i) parts += ".a";
  for (int i = 0; i < 250; ++i) nested += parts + " = { ";
  nested += "b = 1";
  for (int i = 0; i < 250; ++i) nested += " }";
  for (const std::string& text : {braces, brackets, nested}) {
    EXPECT_NE(refusal([&] { load_experiment(folder.write("deep.toml", text)); }), "accepted");
  }
}

// The run would leave an experiment.toml that nothing reads: no resume, no evaluate.
TEST(Paths, ThatTomlCannotHoldAreRefused) {
  const TemporaryFolder folder;
  const std::string rest = "[init]\nfrom = ";
  const auto relative = folder.write("caf\xe9/relative.toml", required_keys + rest + "\"weights\"\n"),
             absolute = folder.write("caf\xe9/absolute.toml", required_keys + rest + "\"/data/weights\"\n"),
             plain = folder.write("café/plain.toml", required_keys + rest + "\"weights\"\n");
  const std::string sentence = refusal([&] { load_experiment(relative); });
  EXPECT_NE(sentence.find("relative.toml:5:8: the path \"weights\" is relative to a folder whose name is not UTF-8"),
            std::string::npos)
      << sentence;
  EXPECT_EQ(load_experiment(absolute).init.from, "/data/weights");
  EXPECT_EQ(load_experiment(plain).init.from, folder.path() / "café" / "weights");
}

}  // namespace

}  // namespace headroom
