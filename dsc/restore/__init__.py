"""Restored images: without noise, and with their missing pixels filled."""

from dsc.restore.config import RestoreConfig
from dsc.restore.denoising import DenoiseStep, denoise, denoise_tile, estimate_noise
from dsc.restore.inpainting import InpaintStep, inpaint, inpaint_tile
