"""Images of RGB experiments: their files and splits; `thonecls.images.networks` needs torch."""

from __future__ import annotations

from thonecls.images.catalogue import IMAGES, ImageSpec, image_spec
from thonecls.images.files import Images, is_present, load_images
from thonecls.images.splits import ImageSplit, image_split

__all__ = [
    "IMAGES",
    "ImageSpec",
    "ImageSplit",
    "Images",
    "image_spec",
    "image_split",
    "is_present",
    "load_images",
]
