// Names that other trainers and users' own scripts use for the keys of an experiment file.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace headroom {

struct OldKey {
  std::string_view old;   // lower case, with underscores
  std::string_view key;   // Headroom's key or section; empty: there is none
  std::string_view note;  // advice where the value changes too, or no key exists
};

// Another name for a word that a key may have, such as "OneCycleLR".
struct OldWord {
  std::string_view key, old, word;  // old as in OldKey
};

// Lower case, '-' as '_'.
std::string normalised(std::string_view name);

std::span<const OldKey> all_old_keys();

// Looks up the last part of a key, in any case. NULL: not known.
const OldKey* find_old_key(std::string_view name);

std::span<const OldWord> all_old_words();

// The word of `key` that other programs call `word`; "" where there is none.
std::string_view find_old_word(std::string_view key, std::string_view word);

}  // namespace headroom
