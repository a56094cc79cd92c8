// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One form for equal masks. `not` goes down to leaves, where a leaf may know its own
// complement; nested connectives of one kind become one; leaves that know each other are
// merged; and what affine masks imply of each other is left out by comparing sets.
//
#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace attn;

namespace {

using Masks = SmallVector<MaskInterface>;

/// Pairs to look at for each part that may be left out: a millisecond or less.
constexpr int64_t smallBudget = 50'000;

std::string textOf(MaskInterface mask) {
  std::string text;
  llvm::raw_string_ostream(text) << mask;
  return text;
}

/// Does what rows see begin with the first key, whatever the lengths are? Lists that do make less
/// code of what is united with them, so they come first.
bool beginsAtZero(MaskInterface mask) {
  Index any = Index::position(1);
  MaskScope probe{any, any, any, any, [](unsigned, Index) { return Index::runtime(1); }};
  IndexMath math;
  IntervalList some = mask.keyRanges(math, probe, {any, any}).some;
  return !some.empty() && some.front().lo.is(0);
}

/// Canonical forms of an expression's parts and of their complements, each found once: each level of a nested
/// expression asks for the same of those below it.
class CanonicalMasks {
public:
  MaskInterface of(MaskInterface mask) {
    if (auto known = found.find(mask); known != found.end())
      return known->second;
    MaskInterface form = find(mask);
    return found[mask] = form;
  }

private:
  MaskInterface find(MaskInterface mask);
  MaskInterface ofNot(NotMaskAttr mask);
  MaskInterface ofHeads(HeadsMaskAttr mask);

  DenseMap<Attribute, MaskInterface> found;
};

/// `and` and `or` are each other's mirror image: `all` is the mask that decides nothing in it,
/// `none` the one that decides everything.
class Connective {
public:
  Connective(CanonicalMasks &forms, MLIRContext *context, bool isAnd) : forms(forms), context(context), isAnd(isAnd) {
    MaskInterface full = FullMaskAttr::get(context), empty = negated(full);
    neutral = isAnd ? full : empty;
    deciding = isAnd ? empty : full;
  }

  MaskInterface canonical(ArrayRef<MaskInterface> given) {
    Masks parts;
    for (MaskInterface mask : given)
      addFlat(forms.of(mask), parts);
    merge(parts);
    llvm::sort(parts, [](MaskInterface a, MaskInterface b) {
      return std::pair(!beginsAtZero(a), textOf(a)) < std::pair(!beginsAtZero(b), textOf(b));
    });
    parts.erase(llvm::unique(parts), parts.end());
    for (MaskInterface part : parts)
      if (part == deciding || llvm::is_contained(parts, forms.of(negated(part))))
        return deciding;
    absorb(parts);
    dropImplied(parts);
    return build(parts);
  }

private:
  bool isMine(MaskInterface mask) const { return isAnd ? isa<AndMaskAttr>(mask) : isa<OrMaskAttr>(mask); }

  MaskInterface build(ArrayRef<MaskInterface> parts) const {
    if (parts.empty())
      return neutral;
    if (parts.size() == 1)
      return parts.front();
    return isAnd ? MaskInterface(AndMaskAttr::get(context, parts)) : OrMaskAttr::get(context, parts);
  }

  void addFlat(MaskInterface mask, Masks &parts) const {
    if (isMine(mask))
      for (MaskInterface child : mask.children())
        addFlat(child, parts);
    else if (mask != neutral)
      parts.push_back(mask);
  }

  MaskInterface merged(MaskInterface a, MaskInterface b) const { return isAnd ? a.intersected(b) : a.united(b); }

  void merge(Masks &parts) const {
    for (size_t i = 0; i < parts.size(); ++i)
      for (size_t j = i + 1; j < parts.size(); ++j) {
        MaskInterface one = merged(parts[i], parts[j]);
        if (!one)
          one = merged(parts[j], parts[i]);
        if (!one)
          continue;
        parts.erase(parts.begin() + j);
        parts.erase(parts.begin() + i);
        addFlat(one.simplified(), parts);
        i = -1; // from the start: the new one may merge with others
        break;
      }
  }

  /// and<a, or<a, b>> is a, and or<a, and<a, b>> too.
  void absorb(Masks &parts) const {
    llvm::erase_if(parts, [&](MaskInterface part) {
      return !part.children().empty() && !isMine(part) && !isa<NotMaskAttr, HeadsMaskAttr>(part) &&
             llvm::any_of(part.children(), [&](MaskInterface child) { return llvm::is_contained(parts, child); });
    });
  }

  /// Leaves out affine parts that the other affine ones imply; the longest texts first.
  void dropImplied(Masks &parts) const {
    Masks affine, order;
    llvm::copy_if(parts, std::back_inserter(affine), [](MaskInterface part) {
      AffineTerms terms;
      return part.affine(terms);
    });
    order = affine;
    llvm::stable_sort(order, [](MaskInterface a, MaskInterface b) { return textOf(a).size() > textOf(b).size(); });
    auto equal = [&](ArrayRef<MaskInterface> a, ArrayRef<MaskInterface> b) {
      return compareMasks(build(a), build(b), smallBudget).verdict == MaskComparison::Equal;
    };
    for (MaskInterface part : order) {
      Masks others;
      llvm::copy_if(affine, std::back_inserter(others), [&](MaskInterface other) { return other != part; });
      if (!equal(affine, others))
        continue;
      affine = others;
      llvm::erase(parts, part);
    }
    if (affine.size() > 1 && equal(affine, {deciding}))
      parts = {deciding};
  }

  CanonicalMasks &forms;
  MLIRContext *context;
  bool isAnd;
  MaskInterface neutral, deciding;
};

} // namespace

MaskInterface CanonicalMasks::ofNot(NotMaskAttr mask) {
  MLIRContext *context = mask.getContext();
  MaskInterface inner = of(mask.getMasks().front());
  if (isa<FullMaskAttr>(inner))
    return negated(inner);
  if (isa<NotMaskAttr>(inner))
    return negated(inner);
  if (isa<AndMaskAttr, OrMaskAttr, HeadsMaskAttr>(inner)) {
    Masks parts = llvm::map_to_vector(inner.children(), negated);
    if (isa<HeadsMaskAttr>(inner))
      return of(HeadsMaskAttr::get(context, parts));
    return Connective(*this, context, /*isAnd=*/isa<OrMaskAttr>(inner)).canonical(parts);
  }
  MaskInterface complement = inner.complemented();
  return complement ? complement.simplified() : negated(inner);
}

MaskInterface CanonicalMasks::ofHeads(HeadsMaskAttr mask) {
  Masks parts = llvm::map_to_vector(mask.getMasks(), [&](MaskInterface part) { return of(part); });
  // Neighbours that are alike, all over, are one group.
  for (size_t group = parts.size(); group > 1; --group) {
    if (parts.size() % group)
      continue;
    bool alike = true;
    for (size_t i = 0; i < parts.size(); ++i)
      alike &= parts[i] == parts[i - i % group];
    if (!alike)
      continue;
    Masks fewer;
    for (size_t i = 0; i < parts.size(); i += group)
      fewer.push_back(parts[i]);
    parts = fewer;
    break;
  }
  return parts.size() == 1 ? parts.front() : MaskInterface(HeadsMaskAttr::get(mask.getContext(), parts));
}

MaskInterface CanonicalMasks::find(MaskInterface mask) {
  if (auto inverse = dyn_cast<NotMaskAttr>(mask))
    return ofNot(inverse);
  if (auto heads = dyn_cast<HeadsMaskAttr>(mask))
    return ofHeads(heads);
  if (isa<AndMaskAttr, OrMaskAttr>(mask))
    return Connective(*this, mask.getContext(), isa<AndMaskAttr>(mask)).canonical(mask.children());
  return mask.simplified();
}

MaskInterface attn::canonicalMask(MaskInterface mask) { return CanonicalMasks().of(mask); }

int64_t attn::longestSequence(MaskInterface mask) {
  int64_t longest = isa<PredicateMaskAttr>(mask) ? longestOfPredicates : int64_t(1) << 30;
  for (MaskInterface child : mask.children())
    longest = std::min(longest, longestSequence(child));
  return longest;
}

bool attn::dependsOnHead(MaskInterface mask) {
  return mask.asksForHead() ||
         llvm::any_of(mask.operands(), [](const MaskOperand &o) { return o.heads != OperandHeads::shared; }) ||
         llvm::any_of(mask.children(), dependsOnHead);
}

bool attn::dependsOnQueryHead(MaskInterface mask) {
  return mask.asksForHead() ||
         llvm::any_of(mask.operands(), [](const MaskOperand &o) { return o.heads == OperandHeads::per_head; }) ||
         llvm::any_of(mask.children(), dependsOnQueryHead);
}
